"""Metrics, traces and stalls."""
