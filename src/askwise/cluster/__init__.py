"""Work on several machines, or in several processes of this one. Dask is imported here and nowhere else.

engines: the words that name where work runs, and how many cores this process may use
client: connects to a cluster, sends data once, hands out jobs and gives their results as they end
"""
