package regression_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/openshift/update-preflight/collector/afterupdate/regression"
	"github.com/openshift/update-preflight/collector/baseline"
)

func bad(object baseline.Object, reasons ...string) baseline.Object {
	for _, reason := range reasons {
		object.Add(baseline.Problem{Reason: reason})
	}
	return object
}

// of is a workload with ready pods of a number of desired ones.
func of(ready, desired int32) baseline.Object {
	return baseline.Object{Desired: desired, Ready: ready, Revision: "1", Generation: 1, Detail: "web-1"}
}

// ours is an object of the release, as sampling proves it.
func ours(object baseline.Object) baseline.Object {
	object.Release = true
	return object
}

func TestClass(t *testing.T) {
	web := baseline.Key{Kind: baseline.Deployment, Namespace: "shop", Name: "web"}
	set := baseline.Key{Kind: baseline.StatefulSet, Namespace: "shop", Name: "db"}
	router := baseline.Key{Kind: baseline.Deployment, Namespace: "openshift-ingress", Name: "router-default"}
	dns := baseline.Key{Kind: baseline.ClusterOperator, Name: "dns"}
	node := baseline.Key{Kind: baseline.Node, Name: "worker-1"}
	service := baseline.Key{Kind: baseline.Service, Namespace: "shop", Name: "web"}
	csi := baseline.Key{Kind: baseline.CSINode, Name: "worker-1"}
	machines := baseline.Key{Kind: baseline.MachineSet, Namespace: "openshift-machine-api", Name: "workers"}
	operator := baseline.Key{Kind: baseline.ClusterServiceVersion, Namespace: "operators", Name: "widget"}
	packages := baseline.Key{Kind: baseline.ClusterServiceVersion, Namespace: "openshift-operator-lifecycle-manager", Name: "packageserver"}
	firewall := baseline.Key{Kind: baseline.EgressFirewall, Namespace: "shop", Name: "default"}
	changed, scaled := of(1, 3), of(3, 5)
	changed.Revision, changed.Generation = "2", 2
	scaled.Generation = 2
	rolled, rolledByOwner, setScaled := of(3, 3), of(1, 3), of(1, 3)
	rolled.Detail = "web-2"
	rolledByOwner.Detail, rolledByOwner.Generation = "web-2", 2
	setScaled.Generation = 2
	often, oftener := of(3, 3), of(3, 3)
	often.Restarts, oftener.Restarts = 40, 100
	for name, tc := range map[string]struct {
		reason string
		key    baseline.Key
		// before is nil for an object that was not there.
		before *baseline.Object
		now    baseline.Object
		// problem is the reason of the only problem; empty for none.
		problem string
		class   regression.Class
	}{
		"Worse": {
			reason: "it was good", key: web, before: new(of(3, 3)), now: bad(of(1, 3), "Unavailable"), problem: "Unavailable",
			class: regression.Worse,
		},
		"Good": {reason: "all pods are ready", key: web, before: new(of(3, 3)), now: of(3, 3)},
		"BadBefore": {
			reason: "it was as bad before", key: web, before: new(bad(of(1, 3), "CrashLoopBackOff")),
			now: bad(of(1, 3), "Unavailable"), problem: "Unavailable", class: regression.Unchanged,
		},
		"LessThanBefore": {
			reason: "fewer pods are ready than before", key: web, before: new(bad(of(2, 3), "CrashLoopBackOff")),
			now: bad(of(0, 3), "Unavailable"), problem: "Unavailable", class: regression.Worse,
		},
		"OwnerChanged": {
			reason: "its owner rolled out another template", key: web, before: new(of(3, 3)), now: bad(changed, "Unavailable"),
			problem: "Unavailable", class: regression.Excused,
		},
		"PlatformChanged": {
			reason: "the release changes its own workloads", key: router, before: new(ours(of(3, 3))),
			now: ours(bad(changed, "Unavailable")), problem: "Unavailable", class: regression.Worse,
		},
		"ScaledUp": {
			reason: "as many pods as before are ready", key: web, before: new(of(3, 3)), now: bad(scaled, "Unavailable"),
			problem: "Unavailable", class: regression.Excused,
		},
		"ScaledAndWorse": {
			reason: "fewer pods than before are ready", key: web, before: new(of(4, 4)), now: bad(scaled, "Unavailable"),
			problem: "Unavailable", class: regression.Worse,
		},
		"ScaledAndCrashes": {
			reason: "a pod of the same template crashes, which a number of replicas does not explain", key: web,
			before: new(of(3, 3)), now: bad(scaled, "CrashLoopBackOff"), problem: "CrashLoopBackOff", class: regression.Worse,
		},
		"MachinesAdded": {
			reason: "the cloud has no capacity for the machine that was added", key: machines,
			before: &baseline.Object{Desired: 3, Ready: 3}, now: bad(baseline.Object{Desired: 4, Ready: 3}, "MachinesNotReady"),
			problem: "MachinesNotReady", class: regression.Excused,
		},
		"MachineLost": {
			reason: "a machine of before is not ready", key: machines, before: &baseline.Object{Desired: 3, Ready: 3},
			now: bad(baseline.Object{Desired: 4, Ready: 2}, "MachinesNotReady"), problem: "MachinesNotReady", class: regression.Worse,
		},
		"OperatorReplaced": {
			reason: "another version of the operator was installed since", key: operator,
			before: &baseline.Object{Detail: "widget.v1.2.3"}, now: bad(baseline.Object{Detail: "widget.v1.2.4"}, "NotSucceeded"),
			problem: "NotSucceeded", class: regression.Excused,
		},
		"OperatorSame": {
			reason: "the same version fails", key: operator, before: &baseline.Object{Detail: "widget.v1.2.3"},
			now: bad(baseline.Object{Detail: "widget.v1.2.3"}, "NotSucceeded"), problem: "NotSucceeded", class: regression.Worse,
		},
		"OperatorOfOCP": {
			reason: "the release replaces its own operators", key: packages,
			before: new(ours(baseline.Object{Detail: "packageserver.v1"})),
			now:    ours(bad(baseline.Object{Detail: "packageserver.v2"}, "NotSucceeded")), problem: "NotSucceeded", class: regression.Worse,
		},
		"FirewallChanged": {
			reason: "its owner wrote rules that cannot be applied", key: firewall, before: &baseline.Object{Generation: 1},
			now: bad(baseline.Object{Generation: 2}, "NotApplied"), problem: "NotApplied", class: regression.Excused,
		},
		"FirewallSame": {
			reason: "the same rules are not applied", key: firewall, before: &baseline.Object{Generation: 1},
			now: bad(baseline.Object{Generation: 1}, "NotApplied"), problem: "NotApplied", class: regression.Worse,
		},
		"AlertOfChannel": {
			reason: "the channel of before has not the present version",
			key:    baseline.Key{Kind: baseline.Alert, Name: "CannotRetrieveUpdates/warning"}, now: bad(baseline.Object{}, "Firing"),
		},
		"New": {
			reason: "a user created it since", key: web, now: bad(of(0, 1), "Unavailable"), problem: "Unavailable",
			class: regression.Excused,
		},
		"NewOfRelease": {
			reason: "the release brought it", key: router, now: ours(bad(of(0, 1), "Unavailable")), problem: "Unavailable",
			class: regression.Worse,
		},
		"RolledByUpdate": {
			reason: "the revision changed, and the spec did not", key: set, before: new(of(3, 3)), now: rolled,
			problem: regression.Rolled, class: regression.Worse,
		},
		"RolledByOwner": {
			reason: "the spec changed", key: set, before: new(of(3, 3)), now: bad(rolledByOwner, "Unavailable"),
			problem: "Unavailable", class: regression.Excused,
		},
		"SetScaled": {
			reason: "a change of the number of replicas alone explains no pod that is not ready", key: set,
			before: new(of(3, 3)), now: bad(setScaled, "Unavailable"), problem: "Unavailable", class: regression.Worse,
		},
		"RestartsAsBefore": {
			reason: "it restarted as often before", key: web, before: &often, now: bad(often, "Restarting"),
			problem: "Restarting", class: regression.Unchanged,
		},
		"RestartsMore": {
			reason: "it restarts more than twice as often", key: web, before: &often, now: bad(oftener, "Restarting"),
			problem: "Restarting", class: regression.Worse,
		},
		"OtherCondition": {
			reason: "conditions of an operator are independent", key: dns, before: new(bad(baseline.Object{}, "Degraded")),
			now: bad(baseline.Object{}, "Degraded", "Unavailable"), problem: "Unavailable", class: regression.Worse,
		},
		"Progressing": {
			reason: "a rollout is a problem, which counts after its limit", key: dns, before: new(ours(baseline.Object{})),
			now: ours(bad(baseline.Object{}, "Progressing")), problem: "Progressing", class: regression.Worse,
		},
		"NodePressure": {
			reason: "a condition of a node that was good", key: node, before: &baseline.Object{},
			now: bad(baseline.Object{}, "DiskPressure"), problem: "DiskPressure", class: regression.Worse,
		},
		"DriverLost": {
			reason: "volumes of the driver cannot be mounted there", key: csi,
			before: &baseline.Object{Detail: "a.example,b.example"}, now: baseline.Object{Detail: "b.example"}, problem: regression.DriverMissing,
			class: regression.Worse,
		},
		"Selection": {
			reason: "its owner changed which pods it selects", key: service, before: &baseline.Object{Ready: 1, Revision: "a"},
			now: bad(baseline.Object{Revision: "b"}, "NoEndpoints"), problem: "NoEndpoints", class: regression.Excused,
		},
		"SelectionUnknown": {
			reason: "the baseline does not state which pods it selected", key: service, before: &baseline.Object{Ready: 1},
			now: bad(baseline.Object{Revision: "b"}, "NoEndpoints"), problem: "NoEndpoints", class: regression.Worse,
		},
		"SelectionOfOurs": {
			reason: "the release changes its own Services", key: baseline.Key{
				Kind: baseline.Service, Namespace: "openshift-dns",
				Name: "dns",
			}, before: new(ours(baseline.Object{Ready: 1, Revision: "a"})), now: ours(bad(baseline.Object{Revision: "b"}, "NoEndpoints")),
			problem: "NoEndpoints", class: regression.Worse,
		},
		"Daemons": {
			reason: "no node was added since, and old pods are ready", key: baseline.Key{
				Kind:      baseline.DaemonSet,
				Namespace: "openshift-dns", Name: "dns-default",
			}, before: new(ours(of(3, 3))), now: ours(bad(of(3, 3), "RolloutIncomplete")),
			problem: "RolloutIncomplete", class: regression.Worse,
		},
		"OperatorOfAll": {
			reason: "the release has no operator of OLM in this namespace",
			key:    baseline.Key{Kind: baseline.ClusterServiceVersion, Namespace: "openshift-operators", Name: "widget"},
			before: &baseline.Object{Detail: "widget.v1.2.3"}, now: bad(baseline.Object{Detail: "widget.v1.2.4"}, "NotSucceeded"),
			problem: "NotSucceeded", class: regression.Excused,
		},
		"OperatorOfAllNew": {
			reason: "a user installed it since", key: baseline.Key{
				Kind:      baseline.ClusterServiceVersion,
				Namespace: "openshift-operators", Name: "widget",
			}, now: bad(baseline.Object{Detail: "widget.v1.2.4"}, "NotSucceeded"),
			problem: "NotSucceeded", class: regression.Excused,
		},
		"OperatorOfAllBad": {
			reason: "the same version fails", key: baseline.Key{
				Kind:      baseline.ClusterServiceVersion,
				Namespace: "openshift-operators", Name: "widget",
			}, before: &baseline.Object{Detail: "widget.v1.2.3"},
			now: bad(baseline.Object{Detail: "widget.v1.2.3"}, "NotSucceeded"), problem: "NotSucceeded", class: regression.Worse,
		},
		"Ephemeral": {reason: "a Job has ended, or a pod without an owner was drained", key: service, before: &baseline.Object{
			Ready:  1,
			Detail: baseline.Ephemeral,
		}, now: bad(baseline.Object{}, "NoEndpoints"), problem: "NoEndpoints", class: regression.Excused},
		"EphemeralUnready": {
			reason: "it selects a pod, which is not ready", key: service, before: &baseline.Object{
				Ready:  1,
				Detail: baseline.Ephemeral,
			}, now: bad(baseline.Object{Detail: baseline.Ephemeral}, "NoReadyEndpoints"), problem: "NoReadyEndpoints",
			class: regression.Worse,
		},
		"EphemeralOfOurs": {
			reason: "an operator makes the pods of the release again", key: baseline.Key{
				Kind:      baseline.Service,
				Namespace: "openshift-dns", Name: "dns",
			}, before: new(ours(baseline.Object{Ready: 1, Detail: baseline.Ephemeral})),
			now: ours(bad(baseline.Object{}, "NoEndpoints")), problem: "NoEndpoints", class: regression.Worse,
		},
		"JobFailed": {
			reason: "a Job that failed once stays failed", key: baseline.Key{
				Kind:      baseline.Alert,
				Namespace: "openshift-image-registry", Name: "KubeJobFailed/warning",
			}, now: ours(bad(baseline.Object{}, "Firing")), problem: "Firing",
			class: regression.Excused,
		},
		"AlertOfUsers": {reason: "an alert about a namespace of users alone is listed", key: baseline.Key{
			Kind:      baseline.Alert,
			Namespace: "shop", Name: "OrdersLate/critical",
		}, now: bad(baseline.Object{}, "Firing"), problem: "Firing", class: regression.Excused},
		"Alert": {
			reason: "only firing alerts are in a state", key: baseline.Key{Kind: baseline.Alert, Name: "TargetDown/warning"},
			now: ours(bad(baseline.Object{}, "Firing")), problem: "Firing", class: regression.Worse,
		},
		"AlertOfNext": {
			reason: "it is about the next update",
			key:    baseline.Key{Kind: baseline.Alert, Name: "ClusterNotUpgradeable/warning"}, now: bad(baseline.Object{}, "Firing"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := baseline.State{Objects: map[baseline.Key]baseline.Object{}}
			if tc.before != nil {
				before.Objects[tc.key] = *tc.before
			}
			made := regression.Compare(&before, baseline.State{Objects: map[baseline.Key]baseline.Object{tc.key: tc.now}}, regression.Seen{})
			got := ""
			for _, each := range made.Found {
				if each.Problem.Reason == tc.problem {
					got += fmt.Sprint(each.Problem.Reason, " ", each.Class)
				}
			}
			want := ""
			if tc.problem != "" {
				want = fmt.Sprint(tc.problem, " ", tc.class)
			}
			if got != want || tc.problem == "" && (len(made.Found) > 0) {
				t.Errorf("%s: %q, want %q of %+v", tc.reason, got, want, made.Found)
			}
		})
	}
}

// What the baseline does not have is unknown, and never a regression.
func TestUnattributed(t *testing.T) {
	web := baseline.Key{Kind: baseline.Deployment, Namespace: "shop", Name: "web"}
	now := baseline.State{Objects: map[baseline.Key]baseline.Object{web: bad(of(0, 1), "Unavailable")}}
	for name, before := range map[string]*baseline.State{
		"NoBaseline": nil,
		"Unread":     {Unread: map[baseline.Kind]string{baseline.Deployment: "forbidden"}},
	} {
		t.Run(name, func(t *testing.T) {
			if made := regression.Compare(before, now, regression.Seen{}); len(made.Found) != 1 || made.Found[0].Class != regression.Unattributed {
				t.Errorf("%+v", made.Found)
			}
		})
	}
}

// The pods of a DaemonSet on a node that was added since, and is not ready, are not those that an update broke.
func TestAddedNodes(t *testing.T) {
	dns := baseline.Key{Kind: baseline.DaemonSet, Namespace: "openshift-dns", Name: "dns-default"}
	known, added := baseline.Key{Kind: baseline.Node, Name: "worker-1"}, baseline.Key{Kind: baseline.Node, Name: "worker-2"}
	for name, tc := range map[string]struct {
		reason  string
		now     baseline.Object
		joining baseline.Object
		want    regression.Class
	}{
		"NotReady": {
			reason: "the node is not ready", now: bad(of(1, 2), "Unavailable"), joining: bad(baseline.Object{}, "NotReady"),
			want: regression.Excused,
		},
		"Ready": {reason: "the pod does not run on a node that is ready", now: bad(of(1, 2), "Unavailable"), want: regression.Worse},
		"More": {
			reason: "another pod is not ready", now: bad(of(0, 2), "Unavailable"), joining: bad(baseline.Object{}, "NotReady"),
			want: regression.Worse,
		},
		"Restarting": {
			reason: "the node does not explain restarts", now: bad(of(1, 2), "CrashLoopBackOff"),
			joining: bad(baseline.Object{}, "NotReady"), want: regression.Worse,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := baseline.State{Objects: map[baseline.Key]baseline.Object{dns: ours(of(1, 1)), known: {}}}
			now := baseline.State{Objects: map[baseline.Key]baseline.Object{dns: ours(tc.now), known: {}, added: tc.joining}}
			for _, each := range regression.Compare(&before, now, regression.Seen{}).Found {
				if each.Key == dns && each.Class != tc.want {
					t.Errorf("%s: %s is %s, want %s", tc.reason, each.Problem.Reason, each.Class, tc.want)
				}
			}
		})
	}
}

// A pool whose only node that is not updated was added since, and does not join, is not one whose nodes an update left behind.
func TestPoolOfAddedNodes(t *testing.T) {
	pool, added := baseline.Key{Kind: baseline.MachineConfigPool, Name: "worker"}, baseline.Key{Kind: baseline.Node, Name: "worker-4"}
	before := baseline.State{Objects: map[baseline.Key]baseline.Object{pool: of(3, 3)}}
	for name, tc := range map[string]struct {
		reason  string
		pool    baseline.Object
		joining baseline.Object
		want    regression.Class
	}{
		"Joining": {
			reason: "the node is not ready", pool: bad(of(3, 4), "NotUpdated"), joining: bad(baseline.Object{}, "NotReady"),
			want: regression.Excused,
		},
		"Ready": {reason: "the node has joined", pool: bad(of(3, 4), "NotUpdated"), want: regression.Worse},
		"More": {
			reason: "another node is not updated", pool: bad(of(2, 4), "NotUpdated"), joining: bad(baseline.Object{}, "NotReady"),
			want: regression.Worse,
		},
		"Degraded": {
			reason: "a node that joins does not degrade its pool", pool: bad(of(3, 4), "Degraded"),
			joining: bad(baseline.Object{}, "NotReady"), want: regression.Worse,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, each := range regression.Compare(&before,
				baseline.State{Objects: map[baseline.Key]baseline.Object{pool: tc.pool, added: tc.joining}}, regression.Seen{}).Found {
				if each.Key == pool && each.Class != tc.want {
					t.Errorf("%s: %s, want %s", tc.reason, each.Class, tc.want)
				}
			}
		})
	}
}

// The request of a node that an administrator adds waits for the administrator; that of a machine for an operator of the release.
func TestRequests(t *testing.T) {
	request := baseline.Key{Kind: baseline.CertificateSigningRequest, Name: "csr-1"}
	set := baseline.Key{Kind: baseline.MachineSet, Namespace: "openshift-machine-api", Name: "workers"}
	worker := baseline.Key{Kind: baseline.Node, Name: "worker-1"}
	ready, notReady := baseline.Object{}, bad(baseline.Object{}, "NotReady")
	for name, tc := range map[string]struct {
		reason string
		node   string
		// worker and set are what is there now; nil for no node.
		worker *baseline.Object
		set    baseline.Object
		// pool is the problem of a NodePool; empty for none.
		pool string
		// lacks and lacksNow are kinds that were not read, before and now.
		lacks, lacksNow baseline.Kind
		want            regression.Class
	}{
		"Added": {reason: "no MachineSet waits for it", node: "metal-9", worker: &ready, set: of(3, 3), want: regression.Excused},
		"First": {
			reason: "no node of before is without a certificate", node: baseline.AnyNode, worker: &ready, set: of(3, 3),
			want: regression.Excused,
		},
		"Known": {reason: "the node was there", node: "worker-1", worker: &ready, set: of(3, 3), want: regression.Worse},
		"FirstNotReady": {
			reason: "the node of before may have lost its certificate", node: baseline.AnyNode, worker: &notReady, set: of(3, 3),
			want: regression.Worse,
		},
		"FirstMissing": {
			reason: "the node of before may have been registered anew", node: baseline.AnyNode, set: of(3, 3),
			want: regression.Worse,
		},
		"Machine": {
			reason: "it may be of a machine, whose requests the release approves", node: "worker-9", worker: &ready,
			set: bad(of(2, 3), "MachinesNotReady"), want: regression.Worse,
		},
		"NodePool": {
			reason: "it may be of a machine that replaces another", node: baseline.AnyNode, worker: &ready, set: of(3, 3),
			pool: "NotUpdated", want: regression.Worse,
		},
		"PoolsUnread": {
			reason: "it may be of a machine of a NodePool", node: "metal-9", worker: &ready, set: of(3, 3),
			lacksNow: baseline.NodePool, want: regression.Unattributed,
		},
		"NoNode": {reason: "it is of no kubelet", worker: &ready, set: of(3, 3), want: regression.Worse},
		"SetsUnread": {
			reason: "it may be of a machine, or not", node: "metal-9", worker: &ready, lacksNow: baseline.MachineSet,
			want: regression.Unattributed,
		},
		"NodesUnread": {
			reason: "the node may have been there", node: "metal-9", worker: &ready, set: of(3, 3), lacks: baseline.Node,
			want: regression.Unattributed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := baseline.State{Objects: map[baseline.Key]baseline.Object{worker: {}}, Unread: map[baseline.Kind]string{tc.lacks: "forbidden"}}
			now := baseline.State{
				Objects: map[baseline.Key]baseline.Object{set: tc.set, request: bad(baseline.Object{Detail: tc.node}, "Pending")},
				Unread:  map[baseline.Kind]string{tc.lacksNow: "forbidden"},
			}
			if tc.worker != nil {
				now.Objects[worker] = *tc.worker
			}
			if tc.pool != "" {
				now.Objects[baseline.Key{Kind: baseline.NodePool, Namespace: "clusters", Name: "workers"}] = bad(baseline.Object{}, tc.pool)
			}
			for _, each := range regression.Compare(&before, now, regression.Seen{}).Found {
				if each.Key == request && each.Class != tc.want {
					t.Errorf("%s: %s (%s), want %s", tc.reason, each.Class, each.Was, tc.want)
				}
			}
		})
	}
}

// An alert whose condition held before the baseline is not of the update, however long it takes to fire.
func TestPendingAlerts(t *testing.T) {
	began := time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)
	alert := baseline.Key{Kind: baseline.Alert, Namespace: "openshift-etcd", Name: "CertificateExpires/warning"}
	for since, want := range map[time.Time]regression.Class{
		began.Add(-time.Minute): regression.Unchanged,
		began.Add(time.Minute):  regression.Worse, {}: regression.Worse,
	} {
		firing := baseline.Object{Release: true, Problems: []baseline.Problem{{Reason: "Firing", Since: since}}}
		made := regression.Compare(&baseline.State{Taken: began}, baseline.State{Objects: map[baseline.Key]baseline.Object{alert: firing}},
			regression.Seen{})
		if len(made.Found) != 1 || made.Found[0].Class != want {
			t.Errorf("since %s: %+v, want %s", since, made.Found, want)
		}
	}
}

// A Route that no router admits is worse, also where an owner changed a workload.
func TestRouteBesideChangedWorkload(t *testing.T) {
	web, route := baseline.Key{Kind: baseline.Deployment, Namespace: "shop", Name: "web"},
		baseline.Key{Kind: baseline.Route, Namespace: "shop", Name: "api"}
	changed := of(0, 1)
	changed.Revision = "2"
	before := baseline.State{Objects: map[baseline.Key]baseline.Object{web: of(1, 1), route: {Ready: 1}}}
	now := baseline.State{Objects: map[baseline.Key]baseline.Object{
		web:   bad(changed, "Unavailable"),
		route: bad(baseline.Object{}, "NotAdmitted"),
	}}
	for _, each := range regression.Compare(&before, now, regression.Seen{}).Found {
		if each.Key == route && each.Class != regression.Worse {
			t.Errorf("%+v", each)
		}
	}
}

// A node that no Machine made is missed by its name; one of a Machine was deleted with it.
func TestMissingNodes(t *testing.T) {
	before := baseline.State{Objects: map[baseline.Key]baseline.Object{
		{Kind: baseline.Node, Name: "metal-1"}: {},
		{Kind: baseline.Node, Name: "cloud-1"}: {Revision: "openshift-machine-api/cloud-1"},
	}}
	made := regression.Compare(&before, baseline.State{}, regression.Seen{})
	if len(made.Found) != 1 || made.Found[0].Key.Name != "metal-1" || made.Found[0].Problem.Reason != baseline.Missing {
		t.Errorf("%+v", made.Found)
	}
	unread := baseline.State{Unread: map[baseline.Kind]string{baseline.Node: "forbidden"}}
	if made := regression.Compare(&before, unread, regression.Seen{}); len(made.Found) > 0 {
		t.Errorf("nodes that were not read are missed: %+v", made.Found)
	}
}

// What depends on a workload that its owner changed, scaled to none or deleted is excused with it: by what it selected, and never
// by a name.
func TestDependents(t *testing.T) {
	key := func(kind baseline.Kind, name string) baseline.Key {
		return baseline.Key{Kind: kind, Namespace: "shop", Name: name}
	}
	webhook, api := baseline.Key{Kind: baseline.ValidatingWebhook, Name: "policy"},
		baseline.Key{Kind: baseline.APIService, Name: "v1.example.com"}
	changed, none := of(0, 1), of(0, 0)
	changed.Revision = "2"
	worse := map[string]baseline.Object{"web": bad(of(0, 1), "Unavailable"), "api": of(1, 1)}
	for name, tc := range map[string]struct {
		reason string
		// workloads are Deployments now: web and api were there before.
		workloads map[string]baseline.Object
		service   string
		// selects is the Deployment whose pods the Service selected in the baseline; empty for none.
		selects string
		problem string
		want    regression.Class
	}{
		"Changed": {reason: "its owner changed the workload that it selects", workloads: map[string]baseline.Object{"web": bad(changed,
			"Unavailable"), "api": of(1, 1)}, service: "web", selects: "web", problem: "NoReadyEndpoints", want: regression.Excused},
		"ToNone": {reason: "its owner scaled the workload that it selects to none", workloads: map[string]baseline.Object{
			"web": none,
			"api": of(1, 1),
		}, service: "web", selects: "web", problem: baseline.NoEndpoints, want: regression.Excused},
		"Deleted": {
			reason: "its owner deleted the workload that it selects", workloads: map[string]baseline.Object{"api": of(1, 1)},
			service: "web", selects: "web", problem: baseline.NoEndpoints, want: regression.Excused,
		},
		"OtherWorse": {reason: "another workload does not matter to it", workloads: map[string]baseline.Object{
			"web": none,
			"api": bad(of(0, 1), "Unavailable"),
		}, service: "web", selects: "web", problem: baseline.NoEndpoints, want: regression.Excused},
		"NotChanged": {
			reason: "no owner changed anything", workloads: worse, service: "web", selects: "web", problem: "NoReadyEndpoints",
			want: regression.Worse,
		},
		"OwnGood": {reason: "the workload that it selects was not changed, and another was", workloads: map[string]baseline.Object{"web": of(1,
			1), "api": none}, service: "web", selects: "web", problem: "NoReadyEndpoints", want: regression.Worse},
		"Selects": {
			reason:    "it selects a workload of another name, which its owner scaled to none",
			workloads: map[string]baseline.Object{"web": none, "api": of(1, 1)}, service: "front", selects: "web", problem: baseline.NoEndpoints,
			want: regression.Excused,
		},
		"NameOnly": {reason: "the workload of its name is none that it selects", workloads: map[string]baseline.Object{
			"web": none,
			"api": of(1, 1),
		}, service: "web", selects: "api", problem: baseline.NoEndpoints, want: regression.Worse},
		"Unnamed": {reason: "nothing states that it selects the one that was changed", workloads: map[string]baseline.Object{
			"web": none,
			"api": of(1, 1),
		}, service: "front", problem: baseline.NoEndpoints, want: regression.Worse},
		"Unclear": {reason: "nor that it selects the one that is worse", workloads: map[string]baseline.Object{
			"web": none,
			"api": bad(of(0, 1), "Unavailable"),
		}, service: "front", problem: baseline.NoEndpoints, want: regression.Worse},
	} {
		t.Run(name, func(t *testing.T) {
			service := key(baseline.Service, tc.service)
			var selected []baseline.Key
			if tc.selects != "" {
				selected = []baseline.Key{key(baseline.Deployment, tc.selects)}
			}
			before := baseline.State{Objects: map[baseline.Key]baseline.Object{
				key(baseline.Deployment, "web"): of(1, 1), key(baseline.Deployment, "api"): of(1, 1), service: {Ready: 1, Refs: selected},
				webhook: {Detail: "shop/" + tc.service}, api: {Detail: "shop/" + tc.service},
			}}
			now := baseline.State{Objects: map[baseline.Key]baseline.Object{
				service: bad(baseline.Object{}, tc.problem), webhook: bad(baseline.Object{Detail: "shop/" + tc.service}, tc.problem),
				api: bad(baseline.Object{Detail: "shop/" + tc.service}, "Unavailable"),
			}}
			for name, object := range tc.workloads {
				now.Objects[key(baseline.Deployment, name)] = object
			}
			for _, each := range regression.Compare(&before, now, regression.Seen{}).Found {
				if dependent := each.Key == service || each.Key == webhook || each.Key == api; dependent && each.Class != tc.want {
					t.Errorf("%s: %s is %s, want %s", tc.reason, each.Key, each.Class, tc.want)
				}
			}
		})
	}
}

// Where the workloads were not read, it is not known whether an owner has deleted that of a Service which selects no pod.
func TestUnreadWorkloads(t *testing.T) {
	web, service, api := baseline.Key{Kind: baseline.Deployment, Namespace: "shop", Name: "web"},
		baseline.Key{Kind: baseline.Service, Namespace: "shop", Name: "web"}, baseline.Key{Kind: baseline.APIService, Name: "v1.example.com"}
	before := baseline.State{Objects: map[baseline.Key]baseline.Object{
		web: of(1, 1), service: {Ready: 1, Refs: []baseline.Key{web}},
		api: {Detail: "shop/web"},
	}}
	for name, tc := range map[string]struct {
		reason   string
		workload *baseline.Object
		problem  string
		want     regression.Class
	}{
		"Unread": {reason: "it may have been deleted", problem: baseline.NoEndpoints, want: regression.Unattributed},
		"Exists": {
			reason: "it is there, and its owner did nothing", workload: new(bad(of(0, 1), "Unavailable")), problem: baseline.NoEndpoints,
			want: regression.Worse,
		},
		"HasPods": {reason: "its pods are there, and are not ready", problem: "NoReadyEndpoints", want: regression.Worse},
	} {
		t.Run(name, func(t *testing.T) {
			now := baseline.State{
				Objects: map[baseline.Key]baseline.Object{
					service: bad(baseline.Object{}, tc.problem),
					api:     bad(baseline.Object{Detail: "shop/web"}, "Unavailable"),
				},
				Unread: map[baseline.Kind]string{baseline.Deployment: "an archive has some of them"},
			}
			if tc.workload != nil {
				now.Objects[web] = *tc.workload
			}
			for _, each := range regression.Compare(&before, now, regression.Seen{}).Found {
				if each.Key != web && each.Class != tc.want {
					t.Errorf("%s: %s is %s, want %s", tc.reason, each.Key, each.Class, tc.want)
				}
			}
		})
	}
}

// What a release or an administrator deletes is named, and is no regression.
func TestGone(t *testing.T) {
	class, operator := baseline.Key{Kind: baseline.StorageClass, Name: "fast"},
		baseline.Key{Kind: baseline.Deployment, Namespace: "openshift-old", Name: "operator"}
	before := baseline.State{Objects: map[baseline.Key]baseline.Object{class: {}, operator: ours(of(1, 1))}}
	made := regression.Compare(&before, baseline.State{}, regression.Seen{})
	if len(made.Found) > 0 || !slices.Equal(made.Gone, []baseline.Key{operator, class}) {
		t.Errorf("%+v", made)
	}
}
