#!/usr/bin/env python3
"""Reports each PodDisruptionBudget that prevents the drain of a node.

Outside of a Job run "oc proxy" and set KUBERNETES_API=http://127.0.0.1:8001.
"""

import json
import os
import ssl
import urllib.request

import preflight

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/"


def get(path, timeout):
    """Sends one GET request to the API server of this cluster."""
    api = os.environ.get("KUBERNETES_API")
    if api:
        return json.load(urllib.request.urlopen(api + path, timeout=timeout))
    with open(SERVICE_ACCOUNT + "token") as token:
        headers = {"Authorization": "Bearer " + token.read()}
    request = urllib.request.Request("https://kubernetes.default.svc" + path, headers=headers)
    trust = ssl.create_default_context(cafile=SERVICE_ACCOUNT + "ca.crt")
    return json.load(urllib.request.urlopen(request, timeout=timeout, context=trust))


def budgets_allow_drain(t):
    budgets = get("/apis/policy/v1/poddisruptionbudgets", t.remaining())["items"]
    for budget in budgets:
        namespace, name = budget["metadata"]["namespace"], budget["metadata"]["name"]
        status = budget["status"]
        # A budget without pods does not prevent an eviction.
        if status["disruptionsAllowed"] > 0 or status["expectedPods"] == 0:
            continue
        t.warn("PodDisruptionBudget %s/%s allows no eviction, so the nodes of its pods cannot be drained" % (namespace, name))
        t.reason("EvictionForbidden")
        t.remedy("Make its pods available or relax it: oc describe poddisruptionbudget -n %s %s" % (namespace, name))
        t.object("policy/v1", "PodDisruptionBudget", name, namespace)


preflight.main(preflight.Check("BudgetsAllowDrain", budgets_allow_drain,
                               description="Every PodDisruptionBudget allows an eviction", timeout=30))
