#!/usr/bin/env python3
"""Asks: can the nodes be drained, or does a PodDisruptionBudget forbid it?

On a laptop run "oc proxy" and set KUBERNETES_API=http://127.0.0.1:8001.
"""

import json
import os
import ssl
import urllib.request

import preflight

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/"


def get(path, timeout):
    """One GET to the API server of this cluster."""
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
        # Without pods there is nothing to evict.
        if status["disruptionsAllowed"] > 0 or status["expectedPods"] == 0:
            continue
        t.warn("budget %s of namespace %s allows no eviction now, so a node with its pods is not drained" % (name, namespace))
        t.reason("EvictionForbidden")
        t.remedy("Bring its pods up, or relax it: oc describe poddisruptionbudget -n %s %s" % (namespace, name))
        t.object("policy/v1", "PodDisruptionBudget", name, namespace)


preflight.main(preflight.Check("BudgetsAllowDrain", budgets_allow_drain,
                               description="Every PodDisruptionBudget allows an eviction", timeout=30))
