package regression_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/afterupdate/regression"
	"github.com/openshift/update-preflight/collector/baseline"
)

type objects = map[baseline.Key]baseline.Object

// in is the key of an object in namespace shop.
func in(kind baseline.Kind, name string) baseline.Key {
	return baseline.Key{Kind: kind, Namespace: "shop", Name: name}
}

// What it means that an object is gone: each row has what was there, and what is.
func TestAbsence(t *testing.T) {
	shop, metal := baseline.Key{Kind: baseline.Namespace, Name: "shop"}, baseline.Key{Kind: baseline.Node, Name: "metal-1"}
	claim, db, web, service := in(baseline.PersistentVolumeClaim, "data-db-0"), in(baseline.StatefulSet, "db"), in(baseline.Deployment, "web"),
		in(baseline.Service, "web")
	dns, dnsService := baseline.Key{Kind: baseline.DaemonSet, Namespace: "openshift-dns", Name: "dns-default"},
		baseline.Key{Kind: baseline.Service, Namespace: "openshift-dns", Name: "dns-default"}
	gold, fast := baseline.Key{Kind: baseline.StorageClass, Name: "gold"}, baseline.Key{Kind: baseline.StorageClass, Name: "fast"}
	etcd := baseline.Key{Kind: baseline.Pod, Namespace: "openshift-etcd", Name: "etcd-master-0"}
	def := baseline.Key{Kind: baseline.CustomResourceDefinition, Name: "widgets.example.com"}
	for name, tc := range map[string]struct {
		reason     string
		was, is    objects
		seen       regression.Seen
		unread     baseline.Kind
		want, gone []string
	}{
		"Namespace": {
			reason: "who deletes a namespace wants none of it", was: objects{shop: {}, web: of(1, 1), claim: {Detail: "Bound"}},
			gone: []string{"Namespace shop"},
		},
		"NamespaceUnread": {
			reason: "it is not known whether the namespace is there", was: objects{shop: {}, claim: {Detail: "Bound"}},
			unread: baseline.Namespace, want: []string{"PersistentVolumeClaim shop/data-db-0 Unattributed"},
		},
		"Claim": {
			reason: "its workload is there", was: objects{shop: {}, claim: {Detail: "Bound"}, db: of(1, 1)},
			is: objects{shop: {}, db: of(1, 1)}, want: []string{"PersistentVolumeClaim shop/data-db-0 Unattributed"},
		},
		"ClaimCleared": {reason: "so is its workload", was: objects{shop: {}, claim: {Detail: "Bound"}, db: {
			Desired: 1, Ready: 1,
			Refs: []baseline.Key{claim},
		}}, is: objects{shop: {}}, gone: []string{"PersistentVolumeClaim shop/data-db-0", "StatefulSet shop/db"}},
		"ClaimOfOther": {reason: "the workload that was scaled to none has another volume", was: objects{
			shop: {}, claim: {Detail: "Bound"},
			db: {Desired: 1, Ready: 1, Refs: []baseline.Key{claim}}, web: of(1, 1),
		}, is: objects{shop: {}, db: {
			Desired: 1, Ready: 1,
			Refs: []baseline.Key{claim},
		}, web: of(0, 0)}, want: []string{"PersistentVolumeClaim shop/data-db-0 Unattributed"}},
		"ClaimUnread": {
			reason: "the claims were not read", was: objects{shop: {}, claim: {Detail: "Bound"}}, is: objects{shop: {}},
			unread: baseline.PersistentVolumeClaim,
		},
		"Operator": {reason: "no operator of the release is deleted by an administrator", was: objects{{
			Kind: baseline.ClusterOperator,
			Name: "monitoring",
		}: ours(baseline.Object{})}, want: []string{"ClusterOperator monitoring Worse"}},
		"Daemons": {reason: "a Service still selects its pods", was: objects{
			dns:        ours(of(3, 3)),
			dnsService: ours(baseline.Object{Refs: []baseline.Key{dns}}),
		}, is: objects{dnsService: ours(bad(baseline.Object{},
			baseline.NoEndpoints))}, want: []string{"DaemonSet openshift-dns/dns-default Worse", "Service openshift-dns/dns-default Worse"}},
		"DaemonsReplaced": {reason: "the release has replaced it by another one", was: objects{
			dns:        ours(of(3, 3)),
			dnsService: ours(baseline.Object{Refs: []baseline.Key{dns}}),
		}, is: objects{dnsService: ours(baseline.Object{
			Ready: 3,
			Refs:  []baseline.Key{web},
		})}, gone: []string{"DaemonSet openshift-dns/dns-default"}},
		"WorkloadOfUsers": {
			reason: "its owner deleted it", was: objects{shop: {}, web: of(1, 1), service: {Ready: 1, Refs: []baseline.Key{web}}},
			is: objects{shop: {}, service: {Ready: 1}}, gone: []string{"Deployment shop/web"},
		},
		"Pool": {
			reason: "each cluster has it", was: objects{{Kind: baseline.MachineConfigPool, Name: "worker"}: ours(of(3, 3))},
			want: []string{"MachineConfigPool worker Worse"},
		},
		"OtherPool": {
			reason: "an administrator has removed it", was: objects{{Kind: baseline.MachineConfigPool, Name: "infra"}: of(3, 3)},
			gone: []string{"MachineConfigPool infra"},
		},
		"Class": {
			reason: "claims that name none have no class", was: objects{gold: {Detail: baseline.Default}, fast: {}},
			is: objects{fast: {}}, want: []string{"StorageClass gold Worse"},
		},
		"OtherClass": {
			reason: "another class is the default now", was: objects{gold: {Detail: baseline.Default}, fast: {}},
			is: objects{fast: {Detail: baseline.Default}}, gone: []string{"StorageClass gold"},
		},
		"Definition": {
			reason: "the release needs it", was: objects{def: ours(baseline.Object{})},
			want: []string{"CustomResourceDefinition widgets.example.com Worse"},
		},
		"UserDefinition": {
			reason: "a user has removed an operator", was: objects{def: {}},
			gone: []string{"CustomResourceDefinition widgets.example.com"},
		},
		"Cordoned": {
			reason: "an administrator has cordoned it before", was: objects{metal: {}},
			seen: regression.Seen{Cordoned: map[baseline.Key]bool{metal: true}}, want: []string{"Node metal-1 Excused"},
		},
		"NotCordoned": {
			reason: "nothing has announced it", was: objects{metal: {}},
			seen: regression.Seen{Cordoned: map[baseline.Key]bool{fast: true}}, want: []string{"Node metal-1 Worse"},
		},
		"Machine": {reason: "its MachineSet decides", was: objects{metal: {Revision: "openshift-machine-api/a"}}},
		"ControlPlane": {
			reason: "a node of the control plane is missed, with a Machine and after a cordon as well",
			was:    objects{metal: ours(baseline.Object{Revision: "openshift-machine-api/a"})},
			seen:   regression.Seen{Cordoned: map[baseline.Key]bool{metal: true}}, want: []string{"Node metal-1 Worse"},
		},
		"Volumes": {reason: "the node is there, and no volume can be mounted", was: objects{
			metal: {},
			{Kind: baseline.CSINode, Name: "metal-1"}: {Detail: "a"},
		}, is: objects{metal: {}}, want: []string{"CSINode metal-1 Worse"}},
		"Static": {
			reason: "the kubelet does not run it any more", was: objects{etcd: ours(baseline.Object{})},
			want: []string{"Pod openshift-etcd/etcd-master-0 Worse"},
		},
		"Request": {reason: "it was decided about", was: objects{{Kind: baseline.CertificateSigningRequest, Name: "csr-1"}: {}}},
		"Owned": {
			reason: "its owner decides", was: objects{shop: {}, web: {Desired: 1, Owner: in("Shop.example.com", "web")}},
			is: objects{shop: {}},
		},
		"NotServed": {
			reason: "its kind is not served any more",
			was:    objects{shop: {}, in("Widget.example.com", "a"): ours(baseline.Object{})}, is: objects{shop: {}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := baseline.State{Objects: tc.is, Unread: map[baseline.Kind]string{tc.unread: "forbidden"}}
			made := regression.Compare(&baseline.State{Objects: tc.was}, now, tc.seen)
			var got, gone []string
			for _, each := range made.Found {
				got = append(got, fmt.Sprint(each.Key, " ", each.Class))
			}
			for _, each := range made.Gone {
				gone = append(gone, each.String())
			}
			if diff := cmp.Diff([2][]string{tc.want, tc.gone}, [2][]string{got, gone}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// So many workloads are gone that no owner is assumed.
func TestMassLoss(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		// had, gone and others are the workloads of the namespace, those that are gone, and those of other namespaces.
		had, gone, others int
		edit              func(was, is objects)
		leaving           bool
		want              int
	}{
		"All":     {reason: "all workloads of a namespace", had: 3, gone: 3, others: 100, want: 3},
		"Few":     {reason: "who deletes two deletes an application", had: 2, gone: 2, others: 100},
		"Part":    {reason: "an application of many", had: 8, gone: 4, others: 100},
		"Tenth":   {reason: "a tenth of all", had: 20, gone: 12, others: 100, want: 12},
		"Deleted": {reason: "the namespace is being deleted", had: 3, gone: 3, others: 100, leaving: true},
		"With": {
			reason: "what is gone with them counts as well, and its owner alone is one object", had: 3, gone: 3, others: 100, want: 4,
			edit: func(was, _ objects) {
				was[in("Shop.example.com", "a")] = baseline.Object{}
				was[in(baseline.Route, "a")] = baseline.Object{}
			},
		},
		"Owned": {reason: "who deletes their owner deletes one object", had: 3, gone: 3, others: 100, edit: func(was, _ objects) {
			for key, object := range was {
				if key.Namespace == "shop" {
					object.Owner = in("Shop.example.com", "a")
					was[key] = object
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			was, now := objects{}, baseline.State{Objects: objects{}}
			for _, namespace := range []string{"shop", "other"} {
				key := baseline.Key{Kind: baseline.Namespace, Name: namespace}
				was[key], now.Objects[key] = baseline.Object{}, baseline.Object{}
			}
			for i := range tc.had + tc.others {
				key := in(baseline.Deployment, fmt.Sprint("web-", i))
				if i >= tc.had {
					key.Namespace = "other"
				}
				if was[key] = of(1, 1); i >= tc.gone {
					now.Objects[key] = of(1, 1)
				}
			}
			if tc.edit != nil {
				tc.edit(was, now.Objects)
			}
			if tc.leaving { // whose objects are left out
				now.Leaving = map[string]bool{"shop": true}
				delete(now.Objects, baseline.Key{Kind: baseline.Namespace, Name: "shop"})
			}
			got := 0
			for _, each := range regression.Compare(&baseline.State{Objects: was}, now, regression.Seen{}).Lost {
				if got += each.Objects; each.Namespace != "shop" {
					t.Errorf("%s lost %d", each.Namespace, each.Objects)
				}
			}
			if got != tc.want {
				t.Errorf("%s: %d are lost, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// An excuse names what was done to the object, or to one that it depends on.
func TestExcuses(t *testing.T) {
	web, service, rollout := in(baseline.Deployment, "web"), in(baseline.Service, "web"), in("Rollout.argoproj.io", "web")
	scaler, claim := in("HorizontalPodAutoscaler.autoscaling", "web"), in(baseline.PersistentVolumeClaim, "new")
	ceph, storage := in("CephCluster.ceph.rook.io", "a"), in("StorageCluster.ocs.openshift.io", "a")
	machines := baseline.Key{Kind: baseline.MachineSet, Namespace: "openshift-machine-api", Name: "workers"}
	router := baseline.Key{Kind: baseline.IngressController, Namespace: "openshift-ingress-operator", Name: "default"}
	alert := in(baseline.Alert, "PodNotReady/critical")
	with := func(object baseline.Object, uid, revision string, refs ...baseline.Key) baseline.Object {
		object.UID, object.Revision, object.Refs = uid, revision, refs
		return object
	}
	owned := func(object baseline.Object, by baseline.Key) baseline.Object {
		object.Owner = by
		return object
	}
	for name, tc := range map[string]struct {
		reason  string
		key     baseline.Key
		was, is objects
		leaving string
		want    regression.Class
	}{
		"Remade": {
			reason: "it was deleted and made again", key: web, was: objects{web: with(of(1, 1), "a", "1")},
			is: objects{web: bad(with(of(0, 1), "b", "1"), "Unavailable")}, want: regression.Excused,
		},
		"NoUID": {
			reason: "the baseline does not identify it", key: web, was: objects{web: with(of(1, 1), "", "1")},
			is: objects{web: bad(with(of(0, 1), "b", "1"), "Unavailable")}, want: regression.Worse,
		},
		"Rollout": {
			reason: "the Rollout that it selects was scaled to none", key: service,
			was: objects{service: {Ready: 1, Refs: []baseline.Key{rollout}}, rollout: {Desired: 2, Ready: 2}},
			is:  objects{service: bad(baseline.Object{}, baseline.NoEndpoints), rollout: {}}, want: regression.Excused,
		},
		"Autoscaler": {
			reason: "its target was changed by its owner", key: scaler, was: objects{
				scaler: with(baseline.Object{}, "a", "1", web),
				web:    of(1, 1),
			}, is: objects{scaler: bad(with(baseline.Object{}, "a", "1", web), "NotScalingActive"), web: with(of(1, 1), "a", "2")},
			want: regression.Excused,
		},
		"OtherTarget": {
			reason: "another workload of its namespace was", key: scaler,
			was: objects{scaler: with(baseline.Object{}, "a", "1", service), web: of(1, 1)}, is: objects{scaler: bad(with(baseline.Object{}, "a",
				"1", service), "NotScalingActive"), web: with(of(1, 1), "a", "2")}, want: regression.Worse,
		},
		"AlsoWorse": {
			reason: "it also depends on one that is worse", key: service,
			was:  objects{service: {Ready: 1, Refs: []baseline.Key{web, rollout}}, web: of(1, 1), rollout: {Desired: 1, Ready: 1}},
			is:   objects{service: bad(baseline.Object{}, "NoReadyEndpoints"), web: bad(of(0, 1), "Unavailable"), rollout: {}},
			want: regression.Worse,
		},
		"Controller": {
			reason: "an operator of the release's catalog changed what it made, and the owner of that did nothing", key: ceph,
			was: objects{ceph: owned(with(baseline.Object{}, "a", "1"), storage), storage: with(baseline.Object{}, "b", "1")},
			is: objects{
				ceph:    bad(owned(with(baseline.Object{}, "a", "2"), storage), "HealthHealthErr"),
				storage: with(baseline.Object{}, "b", "1"),
			}, want: regression.Worse,
		},
		"OwnerOfOwner": {
			reason: "a user changed what it was made for", key: ceph,
			was: objects{ceph: owned(with(baseline.Object{}, "a", "1"), storage), storage: with(baseline.Object{}, "b", "1")},
			is: objects{
				ceph:    bad(owned(with(baseline.Object{}, "a", "1"), storage), "HealthHealthErr"),
				storage: with(baseline.Object{}, "b", "2"),
			}, want: regression.Excused,
		},
		"Cycle": {
			reason: "references that end nowhere excuse nothing", key: service,
			was: objects{service: {Ready: 1, Refs: []baseline.Key{web}}, web: with(of(1, 1), "a", "1", service)}, is: objects{service: bad(
				baseline.Object{Refs: []baseline.Key{web}}, "NoReadyEndpoints"), web: with(of(1, 1), "a", "1", service)}, want: regression.Worse,
		},
		"MachinesOurs": {
			reason: "MachineSets are in a namespace of the release, and administrators scale them", key: machines,
			was: objects{machines: ours(baseline.Object{Desired: 3, Ready: 3})},
			is:  objects{machines: ours(bad(baseline.Object{Desired: 4, Ready: 3}, "MachinesNotReady"))}, want: regression.Excused,
		},
		"RouterOurs": {reason: "so is an IngressController, whose spec is an administrator's", key: router, was: objects{router: ours(
			baseline.Object{Generation: 1})}, is: objects{router: ours(bad(baseline.Object{Generation: 2}, "Degraded"))}, want: regression.Excused},
		"Leaving": {reason: "its Service is in a namespace that is being deleted", key: baseline.Key{
			Kind: baseline.ValidatingWebhook,
			Name: "policy",
		}, was: objects{{Kind: baseline.ValidatingWebhook, Name: "policy"}: {Detail: "kyverno/svc"}, {
			Kind:      baseline.Service,
			Namespace: "kyverno", Name: "svc",
		}: {Ready: 1}}, is: objects{{
			Kind: baseline.ValidatingWebhook,
			Name: "policy",
		}: bad(baseline.Object{Detail: "kyverno/svc"}, "NoReadyEndpoints")}, leaving: "kyverno", want: regression.Excused},
		"NewClaim": {
			reason: "a user's new claim of a class that is worse is a consequence", key: claim,
			was: objects{{Kind: baseline.StorageClass, Name: "gold"}: {}},
			is: objects{
				{Kind: baseline.StorageClass, Name: "gold"}: bad(baseline.Object{}, "NotProvisioning"),
				claim: bad(baseline.Object{Refs: []baseline.Key{{Kind: baseline.StorageClass, Name: "gold"}}}, "NotBound"),
			}, want: regression.Excused,
		},
		"Address": {
			reason: "that a load balancer never gave it an address does not explain that its pods are not ready", key: service,
			was: objects{service: bad(baseline.Object{Ready: 1}, "NoAddress")}, is: objects{service: bad(baseline.Object{}, "NoReadyEndpoints")},
			want: regression.Worse,
		},
		"AlertOfShop": {reason: "a workload of the namespace is down, whatever was done to another one", key: alert, was: objects{
			web:     of(1, 1),
			rollout: {Desired: 1, Ready: 1},
		}, is: objects{
			web: bad(of(0, 1), "Unavailable"), rollout: {},
			alert: bad(baseline.Object{Desired: 1}, "Firing"),
		}, want: regression.Worse},
		"Leftover": {
			reason: "a release that brought an API whose Service does not run is to blame",
			key:    baseline.Key{Kind: baseline.APIService, Name: "v1.a"}, is: objects{{
				Kind: baseline.APIService,
				Name: "v1.a",
			}: ours(bad(baseline.Object{Detail: "openshift-monitoring/a"}, "Unavailable"))}, want: regression.Worse,
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := baseline.State{Objects: tc.is}
			if tc.leaving != "" {
				now.Leaving = map[string]bool{tc.leaving: true}
			}
			found := false
			for _, each := range regression.Compare(&baseline.State{Objects: tc.was}, now, regression.Seen{}).Found {
				if each.Key == tc.key {
					if found = true; each.Class != tc.want {
						t.Errorf("%s: %s (%s), want %s", tc.reason, each.Class, each.Was, tc.want)
					}
				}
			}
			if !found {
				t.Errorf("%s: nothing was found", tc.reason)
			}
		})
	}
}

// What a kind without a row may become without being worse, and what not.
func TestPhaseLeft(t *testing.T) {
	key := in("Workflow.argoproj.io", "a")
	for name, tc := range map[string]struct {
		reason  string
		was, is baseline.Object
		want    string
	}{
		"Left": {
			reason: "it was ready, and waits", was: baseline.Object{Detail: "Ready"}, is: baseline.Object{Detail: "Pending"},
			want: regression.PhaseLeft,
		},
		"Good":   {reason: "both are good", was: baseline.Object{Detail: "Running"}, is: baseline.Object{Detail: "Succeeded"}},
		"Better": {reason: "it waited before", was: baseline.Object{Detail: "Pending"}, is: baseline.Object{Detail: "Creating"}},
		"Same":   {reason: "nothing has changed", was: baseline.Object{Detail: "HEALTHY"}, is: baseline.Object{Detail: "HEALTHY"}},
		"Spelling": {
			reason: "the new release spells it in another way", was: baseline.Object{Detail: "healthy"},
			is: baseline.Object{Detail: "HEALTHY"},
		},
		"Ended": {
			reason: "a run that has ended has no phase that is compared", was: baseline.Object{Detail: "Running"},
			is: baseline.Object{},
		},
		"Completed": {
			reason: "so has one that states no time", was: baseline.Object{Detail: "Running"},
			is: baseline.Object{Detail: "Completed"},
		},
		"Parts": {
			reason: "it has no pods any more, and says nothing", was: baseline.Object{Desired: 3, Ready: 3},
			is: baseline.Object{Desired: 3}, want: regression.PartsGone,
		},
		"PartsLess": {
			reason: "it counts fewer of them, and is judged by what it says", was: baseline.Object{Desired: 3, Ready: 3},
			is: baseline.Object{Desired: 3, Ready: 2},
		},
		"ToNone": {reason: "its owner scaled it", was: baseline.Object{Desired: 3, Ready: 3}, is: baseline.Object{}},
		"BadBefore": {
			reason: "it had no pods that were ready", was: bad(baseline.Object{Desired: 3, Ready: 1}, "PartsNotReady"),
			is: baseline.Object{Desired: 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			made := regression.Compare(&baseline.State{Objects: objects{key: tc.was}},
				baseline.State{Objects: objects{key: tc.is}, APIs: map[baseline.Kind]baseline.API{key.Kind: {}}}, regression.Seen{})
			got := ""
			for _, each := range made.Found {
				got += each.Problem.Reason
			}
			if got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
