"""The daemon as others meet it: gRPC (``cuzk.v1.ProvingEngine``), a status page with JSON and metrics, a client.

It knows the engine and nothing of keys, circuits or devices.
"""

CODE_KEY = "cuzk-error-code"
"""Of a call's trailing metadata: the ``code`` of the error that refused it."""
