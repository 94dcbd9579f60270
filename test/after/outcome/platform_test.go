package outcome_test

import (
	"fmt"
	"time"

	"github.com/openshift/update-preflight/test/after"
)

func workers() []after.Ref {
	return refs(in("Node worker-0"), in("Node worker-1"), in("Node worker-2"))
}

// worsePlatform are about nodes, and what the release has.
func worsePlatform() []row {
	stuck := in("Node worker-1")
	return []row{
		{name: "17Cordoned", reason: "the update cordoned it, and its end was not applied", change: func(w *after.World) {
			w.Put(stuck, "spec.unschedulable", true)
			w.Put(stuck, "spec.taints", []any{map[string]any{
				"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule",
				"timeAdded": w.At(100 * time.Minute),
			}})
			w.Annotate(stuck, map[string]string{
				"machineconfiguration.openshift.io/desiredDrain":     "uncordon-2",
				"machineconfiguration.openshift.io/lastAppliedDrain": "drain-2",
			})
		}, answer: answer{named: refs(stuck)}},
		{name: "18OldKernel", reason: "its pool says that it is updated", before: func(w *after.World) {
			for _, each := range w.All("Node") {
				w.Put(each, "status.nodeInfo.kernelVersion", "5.14.0-427.50.1.el9_4.x86_64")
			}
		}, change: func(w *after.World) {
			for _, each := range w.All("Node") {
				w.Put(each, "status.nodeInfo.kernelVersion", "5.14.0-427.55.1.el9_4.x86_64")
			}
			w.Put(stuck, "status.nodeInfo.kernelVersion", "5.14.0-427.50.1.el9_4.x86_64")
			w.Put(stuck, "status.nodeInfo.kubeletVersion", "v1.31.1")
		}, answer: answer{named: refs(stuck)}},
		{
			name: "20AlertWider", reason: "it fired for one pod, and fires for 40",
			before: func(w *after.World) { w.FireFor("RequestErrorsHigh", "shop", "web-1", "warning", 5*time.Hour) }, change: func(w *after.World) {
				for i := range 39 {
					w.FireFor("RequestErrorsHigh", "shop", fmt.Sprintf("api-%d", i), "warning", since)
				}
			}, answer: answer{named: refs(in("Alert shop/RequestErrorsHigh/warning"))},
		},
		{name: "21OLMUpgraded", reason: "no user changed it: the catalog of the new release did", before: func(w *after.World) {
			w.Put(in("Subscription operators/widget"), "spec", map[string]any{
				"name": "widget", "source": "redhat-operators",
				"sourceNamespace": "openshift-marketplace", "channel": "stable", "installPlanApproval": "Automatic",
			})
		}, change: func(w *after.World) {
			gone(w, in("ClusterServiceVersion operators/widget.v1.2.3"))
			csv := made(w, "ClusterServiceVersion operators/widget.v1.3.0", 90*time.Minute,
				`{"spec":{"version":"1.3.0","replaces":"widget.v1.2.3"},"status":{"phase":"Failed","reason":"InstallCheckFailed","message":"install timeout","lastTransitionTime":"`+w.At(since)+`"}}`)
			w.Managed(csv, "catalog", "Update", 90*time.Minute)
			w.Put(in("Subscription operators/widget"), "status.installedCSV", "widget.v1.3.0")
			w.Put(in("Subscription operators/widget"), "status.currentCSV", "widget.v1.3.0")
		}, answer: answer{
			either: refs(in("ClusterServiceVersion operators/widget"), in("ClusterServiceVersion operators/widget.v1.3.0")),
			also:   refs(in("Subscription operators/widget")),
		}},
		{name: "22ImageStream", reason: "an image of the platform is not imported", before: func(w *after.World) {
			w.Released(put(w, "ImageStream openshift/cli",
				`{"spec":{"tags":[{"name":"latest","from":{"kind":"DockerImage","name":"quay.io/openshift-release-dev/ocp-v4.0-art-dev:cli"},"generation":1}]},"status":{"tags":[{"tag":"latest","items":[{"created":"`+w.At(long)+`","generation":1,"image":"sha256:1"}]}]}}`))
		}, change: func(w *after.World) {
			w.Put(in("ImageStream openshift/cli"), "status.tags", []any{map[string]any{"tag": "latest", "items": []any{}, "conditions": []any{
				map[string]any{
					"type": "ImportSuccess", "status": "False", "reason": "Unauthorized", "message": "you may not have access",
					"lastTransitionTime": w.At(since), "generation": int64(2),
				},
			}}})
		}, answer: answer{named: refs(in("ImageStream openshift/cli"))}},
		{name: "34Taint", reason: "the cloud controller does not initialize them", change: func(w *after.World) {
			for _, each := range workers() {
				w.Put(each, "spec.taints", []any{map[string]any{
					"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true",
					"effect": "NoSchedule",
				}})
			}
		}, answer: answer{either: workers()}},
	}
}

// worseCourses are states that only several looks show.
func worseCourses() []row {
	storage, web, db := in("ClusterOperator storage"), in("Deployment shop/web"), in("StatefulSet shop/db")
	dns := in("DaemonSet openshift-dns/dns-default")
	progressing := func(w *after.World) { conditions(w, storage, 125*time.Minute, "Progressing=True/Rolling") }
	four := named("shop", "Deployment", "web api cart mail")
	return []row{
		{name: "13Progressing", reason: "no rollout takes three hours", looks: []time.Duration{
			70 * time.Minute, 35 * time.Minute, 0,
			-35 * time.Minute, -65 * time.Minute,
		}, change: progressing, answer: answer{named: refs(storage)}},
		{name: "14ProgressingAndDown", reason: "what is down is named before the operator settles", change: func(w *after.World) {
			progressing(w)
			for _, each := range four {
				down(w, each, 3, "CrashLoopBackOff", since)
			}
			down(w, dns, 7, "CrashLoopBackOff", since)
		}, answer: answer{named: append(refs(dns), four...), also: refs(storage)}},
		{
			name: "15OperatorFlaps", reason: "it is unavailable half of the time", looks: every(5*time.Minute, 70*time.Minute, 0),
			at: func(w *after.World, before time.Duration) {
				minute := before.Minutes()
				if begun := float64(int(minute)/20*20 + 20); minute > begun-10.5 {
					conditions(w, storage, time.Duration(begun)*time.Minute, "Available=False/Probe")
				} else {
					conditions(w, storage, time.Duration(begun-10)*time.Minute, "Available=True")
				}
			}, answer: answer{named: refs(storage)},
		},
		{
			name: "25ReadinessFlaps", reason: "no pod is ready half of the time", looks: every(5*time.Minute, 70*time.Minute, 0),
			at: func(w *after.World, before time.Duration) {
				ready := 0
				if int(before.Minutes())%10 < 5 {
					ready = len(w.Pods(web))
				}
				flap(w, web, before, ready)
			}, answer: answer{named: refs(web)},
		},
		{name: "26Restarts", reason: "it never restarted before, and does so each 40 minutes", looks: []time.Duration{
			70 * time.Minute,
			35 * time.Minute, 0, -60 * time.Minute, -110 * time.Minute,
		}, at: func(w *after.World, before time.Duration) {
			for _, pod := range w.Pods(web) {
				times := int((88*time.Minute - before) / (40 * time.Minute))
				w.Restarts(pod, 1+times, 88*time.Minute-time.Duration(times)*40*time.Minute)
			}
		}, answer: answer{named: refs(web)}},
		{
			name: "27OneShot", reason: "each look is of its own process", looks: []time.Duration{30 * time.Minute, 0}, separate: true,
			change: func(w *after.World) { down(w, db, 1, "CrashLoopBackOff", 40*time.Minute) }, answer: answer{named: refs(db)},
		},
	}
}

// flap has so many pods of a Deployment be ready since this look: none, or all.
func flap(w *after.World, of after.Ref, at time.Duration, ready int) {
	status := "False"
	if ready > 0 {
		status = "True"
	}
	all := w.Pods(of)
	for _, pod := range all {
		w.Put(pod, "status.containerStatuses", []any{map[string]any{
			"name": "main", "ready": ready > 0, "restartCount": int64(1),
			"state": map[string]any{"running": map[string]any{"startedAt": w.At(88 * time.Minute)}},
		}})
		conditions(w, pod, at+time.Minute, "Ready="+status, "ContainersReady="+status)
	}
	w.Counts(of, len(all), ready)
	w.Endpoints(of.Namespace, of.Name, ready)
	conditions(w, of, at+time.Minute, "Available="+status)
}

// worseAsToday are those that were named from the first.
func worseAsToday() []row {
	storage, dns, route, machines := in("ClusterOperator storage"), in("DaemonSet openshift-dns/dns-default"), in("Route shop/web"),
		in("MachineSet openshift-machine-api/workers")
	const age = 50 * time.Minute
	rows := []row{
		{
			name: "36Degraded", change: func(w *after.World) { conditions(w, storage, age, "Degraded=True/Disk") },
			answer: answer{named: refs(storage)},
		},
		{
			name: "36Unavailable", change: func(w *after.World) { conditions(w, storage, age, "Available=False/Disk") },
			answer: answer{named: refs(storage)},
		},
		{
			name: "36NotReady", change: func(w *after.World) { conditions(w, in("Node worker-1"), age, "Ready=Unknown/NodeStatusUnknown") },
			answer: answer{named: refs(in("Node worker-1"))},
		},
		{name: "36DNS", change: func(w *after.World) { down(w, dns, 1, "CrashLoopBackOff", age) }, answer: answer{named: refs(dns)}},
		{name: "36Route", change: func(w *after.World) { w.Admit(route, "False", age) }, answer: answer{named: refs(route)}},
		{name: "36MachineSet", change: func(w *after.World) {
			w.Put(machines, "status.readyReplicas", 2)
			w.Put(machines, "status.availableReplicas", 2)
		}, answer: answer{named: refs(machines)}},
	}
	for i := range rows {
		rows[i].reason, rows[i].looks = "it is named today", lately()
	}
	return rows
}
