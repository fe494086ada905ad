"""The bundled validators. `plugin` announces them by the hook that all plugins use.

Shared by several: `record_tables` for records as columns, `image_features` for features of images,
`image_sizes` for the sizes of all, `payload_kinds` for records that are not Examples, and
`options`.
"""
