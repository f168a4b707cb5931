//! What a fabric looks like: the model, its YAML form, generators and importers.
