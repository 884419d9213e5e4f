"""Base classes and functions that pages of the admin share: lists, forms, confirmations, buttons, labels and errors."""
