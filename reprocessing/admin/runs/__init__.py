"""Admin pages that list, plan, show, start, pause, resume and abort runs."""
