"""Workers in processes of their own, with our transport and with kombu's, against faults."""
