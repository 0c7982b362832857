"""The part of the bench that runs inside a guest."""
