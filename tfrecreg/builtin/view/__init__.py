"""`tfrecreg view`: a local web application that shows every record of a dataset.

- `command`: the command
- `run`: from targets as the user names them to a server
- `notebook`: the same beside the cells of a notebook, in a frame
- `server`: a socket on the loopback address, and the server on it
- `guard`: who may ask what; headers of all answers
- `app`: the addresses, and answers as JSON or bytes
- `browsed`: the targets that are open, and the datasets of the registry
- `shards`: the shards of a target by number, and whether they are still the same
- `drawn`: a record as JSON: its image, its objects, its text
- `details`: one record with all its features; `ledger`: what was remarked on its item;
  `raws`: its raw file
- `images`: thumbnails and images; `media`: sounds and videos
- `catalog`: the catalog of a target, made in the background
- `selections`: the records that are chosen; `facets`: what they have in common
- `child`: work in a process of its own
- `findings`: the findings of a check; `compare`: two targets; `save`: selections as files
- `static/`: the browser's side
"""
