"""What-ifs: each a frozen struct whose `apply` turns a task graph into a changed one."""
