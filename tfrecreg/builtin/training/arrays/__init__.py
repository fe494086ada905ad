"""Arrays of features and images, of batches of records."""
