"""Store that letters are sent: the intent before a send, the result of each attempt, and task hints for workers."""
