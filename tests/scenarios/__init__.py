"""What went wrong in other systems, each as a test of this one."""
