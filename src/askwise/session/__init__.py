"""One case after the other: which test comes next, why, and who fetches its result.

step: the next test or the decision, as it is shown
partial_case: what is known of a case so far, and what may still be asked
explanation: why a policy asks or decides, and what it expects
next_steps: the next steps of many cases, computed together
session: one case, question by question, and its record
calls: how functions that fetch results are called, in bounded threads
providers: cases decided by functions that fetch results
"""
