"""What a run of real processes and one in virtual time share: phases, record, contacts and specifications."""
