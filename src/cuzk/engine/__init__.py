"""The proving service without a network: requests in, verified proofs out, none lost.

    request --route, check--> journal --> queue --plan--> worker: load, prepare, prove x n, finish --> journal --> result

``engine.py`` is the state machine and runs on one event loop; :mod:`scheduler` decides and does nothing;
:mod:`worker` is what does the work, in a process of its own for each device.
"""
