"""What a node knows of the database: schema history, images, conflicts, epoch, group commit."""
