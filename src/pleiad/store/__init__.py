"""Stores: where rows and catalog records stay. One contract, one folder per engine."""
