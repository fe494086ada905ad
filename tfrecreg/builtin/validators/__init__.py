"""The bundled validators. `plugin` announces them by the hook that all plugins use."""
