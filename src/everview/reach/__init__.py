"""What the server may reach outside of the environment: addresses and files, by settings of the process."""
