"""Pictures of digits from several sources, all 32 x 32 in three channels."""
