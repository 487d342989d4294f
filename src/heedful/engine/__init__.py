"""Models, data and questions to tasks, and tasks to folders: the only writer of the store."""
