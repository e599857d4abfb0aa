"""What people see of messages: made from the layouts that the nodes' codec is made from."""
