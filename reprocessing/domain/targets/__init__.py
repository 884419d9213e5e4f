"""Targets of redriven messages: HTTP answers, headers and signatures."""
