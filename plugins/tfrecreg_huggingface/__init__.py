"""The bundled source `huggingface`: Parquet files as Hugging Face publishes datasets."""
