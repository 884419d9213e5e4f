"""Read and write configuration files. A key such as `ordering_key` is read like the option add_dlq --ordering-key."""
