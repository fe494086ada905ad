"""`tfrecreg view`: a local web application that shows every record of a dataset.

- `command`: the command; `run`: from targets as the user names them to a server, and its handle
- `server`: a socket on the loopback address, who may ask what, and headers of all answers
- `app`: the addresses, and answers as JSON or bytes
- `browsed`: the targets that are open, and the datasets of the registry
- `shards`: the shards of a target by number, and whether they are still the same
- `drawn`: a record as JSON: its image, its objects, its text
- `record`: one record with all its features, the remarks on its item, its raw file, its tensors
- `media`: thumbnails, images, sounds and videos
- `background`: the catalog of a target, and work in a process of its own
- `selections`: the records that are chosen, and their files; `facets`: what they have in common
- `findings`: the findings of a check; `compare`: two targets
- `static/`: the browser's side
"""
