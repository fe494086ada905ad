"""Making a build: a pure function of raw data, options and schema."""
