"""The node's replica of the database state: schema history, images, conflicts, epoch, group commit."""
