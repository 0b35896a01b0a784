"""The daemon as others meet it: gRPC (``cuzk.v1.ProvingEngine``), a status page with JSON and metrics, a client.

It knows the engine and nothing of keys, circuits or devices.
"""
