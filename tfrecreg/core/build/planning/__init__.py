"""What a build makes, before it makes anything: items, shards, and what an earlier build has."""
