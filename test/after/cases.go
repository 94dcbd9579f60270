package after

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Case is one change of a cluster after its update.
type Case struct {
	Name string
	// Reason is why it is a regression, or none.
	Reason string
	Apply  func(*World)
	// Worse are the problems that are regressions, as "Deployment shop/web Unavailable"; none for an innocent change.
	// Also are those that follow from the change, and may be regressions as well.
	Worse, Also []string
}

// broken is since when what a case breaks is bad.
const broken = 50 * time.Minute

func operator(name string) Ref       { return Ref{Kind: "ClusterOperator", Name: name} }
func pool(name string) Ref           { return Ref{Kind: "MachineConfigPool", Name: name} }
func node(name string) Ref           { return Ref{Kind: "Node", Name: name} }
func deployment(ns, name string) Ref { return Ref{Kind: "Deployment", Namespace: ns, Name: name} }

// down has a number of the pods of a workload wait for a reason.
func (w *World) down(ref Ref, pods int, reason string) {
	all := w.Pods(ref)
	w.Counts(ref, len(all), len(all)-pods)
	w.Endpoints(ref.Namespace, ref.Name, len(all)-pods)
	for _, pod := range all[:pods] {
		w.Container(pod, map[string]any{"waiting": map[string]any{"reason": reason}}, 0, 0)
		w.Condition(pod, "Ready", "False", "ContainersNotReady", broken)
		if reason == "ContainerCreating" {
			w.Put(pod, "status.phase", "Pending")
		}
	}
	if ref.Kind == "Deployment" && pods == len(all) {
		w.Condition(ref, "Available", "False", "MinimumReplicasUnavailable", broken)
	}
}

// Regressions are what users reported after updates, one of each kind that objects show.
func Regressions() []Case { return slices.Concat(regressionsOfPlatform(), regressionsOfWorkloads()) }

// regressionsOfPlatform are those of operators, volumes and nodes.
func regressionsOfPlatform() []Case {
	router := Ref{Kind: "IngressController", Namespace: "openshift-ingress-operator", Name: "default"}
	dns := Ref{Kind: "DaemonSet", Namespace: "openshift-dns", Name: "dns-default"}
	csi := Ref{Kind: "DaemonSet", Namespace: "openshift-cluster-csi-drivers", Name: "aws-ebs-csi-driver-node"}
	return []Case{
		{Name: "IngressCanary", Reason: "the canary of the router fails", Apply: func(w *World) {
			w.Condition(router, "CanaryChecksSucceeding", "False", "CanaryChecksRepetitiveFailures", broken)
			w.Condition(operator("ingress"), "Degraded", "True", "IngressDegraded", broken)
		}, Worse: []string{"IngressController openshift-ingress-operator/default CanaryChecksFailing", "ClusterOperator ingress Degraded"}},
		{Name: "Authentication", Reason: "the OAuth server is not reached", Apply: func(w *World) {
			w.Condition(operator("authentication"), "Available", "False", "OAuthServerRouteEndpointAccessible", broken)
			w.Admit(Ref{Kind: "Route", Namespace: "openshift-authentication", Name: "oauth-openshift"}, "False", broken)
		}, Worse: []string{"ClusterOperator authentication Unavailable", "Route openshift-authentication/oauth-openshift NotAdmitted"}},
		{Name: "AggregatedAPI", Reason: "an aggregated API answers 503", Apply: func(w *World) {
			w.Condition(Ref{Kind: "APIService", Name: "v1.apps.openshift.io"}, "Available", "False", "FailedDiscoveryCheck", broken)
		}, Worse: []string{"APIService v1.apps.openshift.io Unavailable"}},
		{Name: "CoreDNSRestarts", Reason: "CoreDNS restarts again and again", Apply: func(w *World) {
			w.Restarts(w.Pods(dns)[0], 12, 40*time.Minute)
			w.Restarts(w.Pods(dns)[1], 14, 5*time.Minute)
		}, Worse: []string{"DaemonSet openshift-dns/dns-default Restarting"}},
		{Name: "DNSIntermittent", Reason: "the DNS Service has no ready endpoint", Apply: func(w *World) {
			w.Endpoints("openshift-dns", "dns-default", 0)
		}, Worse: []string{"Service openshift-dns/dns-default NoReadyEndpoints"}},
		{Name: "VolumeAttach", Reason: "a volume is not attached, and a node has no driver", Apply: func(w *World) {
			w.Set(Ref{Kind: "VolumeAttachment", Name: "csi-1"},
				`{"spec":{"attacher":"ebs.csi.aws.com","nodeName":"worker-1","source":{"persistentVolumeName":"pv-1"}},"status":{"attached":false,"attachError":{"message":"no such volume","time":"`+w.At(broken)+`"}}}`)
			w.Set(Ref{Kind: "CSINode", Name: "worker-1"}, `{"spec":{"drivers":[]}}`)
		}, Worse: []string{"VolumeAttachment pv-1 AttachFailed", "CSINode worker-1 DriverMissing"}},
		{Name: "ClaimLost", Reason: "a claim lost its volume", Apply: func(w *World) {
			w.Put(Ref{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data-db-1"}, "status.phase", "Lost")
		}, Worse: []string{"PersistentVolumeClaim shop/data-db-1 Lost"}},
		{
			Name: "CSIPods", Reason: "the pods of the CSI driver are not created", Apply: func(w *World) { w.down(csi, 2, "ContainerCreating") },
			Worse: []string{"DaemonSet openshift-cluster-csi-drivers/aws-ebs-csi-driver-node ContainerCreating"},
			Also:  []string{"DaemonSet openshift-cluster-csi-drivers/aws-ebs-csi-driver-node Unavailable"},
		},
		{Name: "PoolDegraded", Reason: "the configuration on disk differs", Apply: func(w *World) {
			w.Condition(pool("worker"), "Degraded", "True", "NodeDegraded", broken)
			w.Annotate(node("worker-1"), map[string]string{
				"machineconfiguration.openshift.io/state":  "Degraded",
				"machineconfiguration.openshift.io/reason": "unexpected on-disk state",
			})
		}, Worse: []string{"MachineConfigPool worker Degraded", "Node worker-1 ConfigDegraded"}},
		{Name: "CustomPool", Reason: "a pool that is not paused is not updated", Apply: func(w *World) {
			w.Put(pool("infra"), "status.updatedMachineCount", 0)
			w.Condition(pool("infra"), "Updated", "False", "Stuck", 70*time.Minute)
			w.Annotate(node("infra-0"), map[string]string{
				"machineconfiguration.openshift.io/state":         "Done",
				"machineconfiguration.openshift.io/currentConfig": "rendered-1", "machineconfiguration.openshift.io/desiredConfig": "rendered-2",
			})
		}, Worse: []string{"MachineConfigPool infra NotUpdated"}, Also: []string{"Node infra-0 OutdatedConfig"}},
		{Name: "DrainStuck", Reason: "a drain does not end", Apply: func(w *World) {
			w.Put(node("worker-2"), "spec.unschedulable", true)
			w.Annotate(node("worker-2"), map[string]string{
				"machineconfiguration.openshift.io/state":         "Working",
				"machineconfiguration.openshift.io/currentConfig": "rendered-2", "machineconfiguration.openshift.io/desiredConfig": "rendered-2",
				"machineconfiguration.openshift.io/desiredDrain": "drain-3", "machineconfiguration.openshift.io/lastAppliedDrain": "uncordon-2",
			})
		}, Worse: []string{"Node worker-2 Draining"}},
		{Name: "NodeNotReady", Reason: "the kubelet does not report", Apply: func(w *World) {
			w.Condition(node("worker-1"), "Ready", "Unknown",
				"NodeStatusUnknown", broken)
		}, Worse: []string{"Node worker-1 NotReady"}},
		{
			Name: "NodeMissing", Reason: "a node that no Machine made is not registered", Apply: func(w *World) { w.Delete(node("infra-0")) },
			Worse: []string{"Node infra-0 Missing"},
		},
		{Name: "CSRPending", Reason: "a request of a kubelet is not approved", Apply: func(w *World) {
			w.Set(Ref{Kind: "CertificateSigningRequest", Name: "csr-1"}, `{"metadata":{"creationTimestamp":"`+w.At(broken)+
				`"},"spec":{"signerName":"kubernetes.io/kubelet-serving","request":"","usages":["server auth"]},"status":{}}`)
		}, Worse: []string{"CertificateSigningRequest csr-1 Pending"}},
	}
}

// regressionsOfWorkloads are those of workloads and what they use, and of the operators that have workloads.
func regressionsOfWorkloads() []Case {
	db := Ref{Kind: "StatefulSet", Namespace: "shop", Name: "db"}
	version := Ref{Kind: "ClusterVersion", Name: "version"}
	return []Case{
		{
			Name: "Monitoring", Reason: "Alertmanager does not start", Apply: func(w *World) {
				w.down(Ref{Kind: "StatefulSet", Namespace: "openshift-monitoring", Name: "alertmanager-main"}, 1, "CrashLoopBackOff")
				w.Condition(operator("monitoring"), "Degraded", "True", "UpdatingAlertmanagerFailed", broken)
			}, Worse: []string{"ClusterOperator monitoring Degraded", "StatefulSet openshift-monitoring/alertmanager-main CrashLoopBackOff"},
			Also: []string{"StatefulSet openshift-monitoring/alertmanager-main Unavailable"},
		},
		{
			Name: "Forbidden", Reason: "the new defaults of the pod security admission forbid the pods", Apply: func(w *World) {
				ref := deployment("shop", "cart")
				for _, pod := range w.Pods(ref) {
					w.Delete(pod)
				}
				w.Counts(ref, 3, 0)
				w.Endpoints("shop", "cart", 0)
				w.Condition(ref, "ReplicaFailure", "True", "FailedCreate", broken)
				w.Condition(ref, "Available", "False", "MinimumReplicasUnavailable", broken)
			}, Worse: []string{"Deployment shop/cart FailedCreate"},
			Also: []string{"Deployment shop/cart Unavailable", "Deployment shop/cart RolloutIncomplete", "Service shop/cart NoEndpoints"},
		},
		{Name: "StatefulSetRolled", Reason: "the update made the pods again, of the same spec", Apply: func(w *World) {
			w.Put(db, "status.updateRevision", "db-2")
			w.Put(db, "status.currentRevision", "db-2")
		}, Worse: []string{"StatefulSet shop/db Rolled"}},
		{
			Name: "Webhook", Reason: "a webhook has no back end",
			Apply: func(w *World) { w.down(deployment("policy", "webhook"), 2, "CrashLoopBackOff") },
			Worse: []string{"ValidatingWebhookConfiguration policy NoReadyEndpoints", "Deployment policy/webhook CrashLoopBackOff"},
			Also:  []string{"Deployment policy/webhook Unavailable", "Service policy/webhook NoReadyEndpoints"},
		},
		{Name: "Capabilities", Reason: "the spec of ClusterVersion is invalid", Apply: func(w *World) {
			w.Condition(version, "Invalid", "True",
				"InvalidClusterVersion", broken)
		}, Worse: []string{"ClusterVersion version Invalid"}},
		{
			Name: "Network", Reason: "the control plane of the network is not rolled out", Apply: func(w *World) {
				ref := deployment("openshift-ovn-kubernetes", "ovnkube-control-plane")
				w.Put(ref, "status.updatedReplicas", 1)
				w.Condition(ref, "Progressing", "False", "ProgressDeadlineExceeded", broken)
			}, Worse: []string{"Deployment openshift-ovn-kubernetes/ovnkube-control-plane ProgressDeadlineExceeded"},
			Also: []string{"Deployment openshift-ovn-kubernetes/ovnkube-control-plane RolloutIncomplete"},
		},
		{
			Name: "ImagePull", Reason: "an image cannot be pulled any more",
			Apply: func(w *World) { w.down(deployment("shop", "api"), 1, "ImagePullBackOff") },
			Worse: []string{"Deployment shop/api ImagePullBackOff"}, Also: []string{"Deployment shop/api Unavailable"},
		},
		{Name: "Operator", Reason: "an operator of OLM failed", Apply: func(w *World) {
			w.Put(Ref{Kind: "ClusterServiceVersion", Namespace: "operators", Name: "widget.v1.2.3"}, "status.phase", "Failed")
		}, Worse: []string{"ClusterServiceVersion operators/widget NotSucceeded"}},
		{Name: "Alert", Reason: "an alert fires that did not before", Apply: func(w *World) {
			w.Fire("TargetDown", "openshift-dns", "warning",
				broken)
		}, Worse: []string{"Alert openshift-dns/TargetDown/warning Firing"}},
		{Name: "Routes", Reason: "the routers do not admit a Route", Apply: func(w *World) {
			w.Admit(Ref{Kind: "Route", Namespace: "shop", Name: "web"}, "False", broken)
		}, Worse: []string{"Route shop/web NotAdmitted"}},
		{Name: "EgressFirewall", Reason: "rules of egress are not applied", Apply: func(w *World) {
			w.Put(Ref{Kind: "EgressFirewall", Namespace: "shop", Name: "default"}, "status.status", "EgressFirewall Rules not correctly applied")
		}, Worse: []string{"EgressFirewall shop/default NotApplied"}},
		{Name: "EgressIP", Reason: "an address of egress has no node", Apply: func(w *World) {
			w.Put(Ref{Kind: "EgressIP", Name: "shop"},
				"status.items", []any{})
		}, Worse: []string{"EgressIP shop NotAssigned"}},
	}
}

// Innocents look like regressions, and are none.
func Innocents() []Case { return slices.Concat(innocentsOfWorkloads(), innocentsOfCluster()) }

// innocentsOfWorkloads are changes of workloads by their owners, and pods that restarted because of the update.
func innocentsOfWorkloads() []Case {
	web, mail := deployment("shop", "web"), deployment("shop", "mail")
	db := Ref{Kind: "StatefulSet", Namespace: "shop", Name: "db"}
	changed := func(w *World, ref Ref) {
		w.Put(ref, "metadata.annotations", map[string]any{"deployment.kubernetes.io/revision": "7"})
		w.Put(ref, "metadata.generation", 7)
	}
	return []Case{
		{
			Name: "OwnerBroke", Reason: "the owner rolled out a broken image",
			Apply: func(w *World) { changed(w, web); w.down(web, 2, "CrashLoopBackOff") },
		},
		{Name: "OwnerBrokeAll", Reason: "and the Service has no endpoint since", Apply: func(w *World) {
			changed(w, mail)
			w.down(mail, 3, "ImagePullBackOff")
			w.Fire("KubePodNotReady", "shop", "warning", broken)
		}, Also: []string{"Alert shop/KubePodNotReady/warning Firing"}}, // where another workload of its namespace is worse
		{Name: "OwnerScaledToZero", Reason: "no pod is wanted", Apply: func(w *World) { w.Scale(mail, 0) }},
		{Name: "ScaledUp", Reason: "the autoscaler added pods", Apply: func(w *World) { w.Scale(web, 9) }},
		{Name: "ScaledDown", Reason: "the autoscaler removed pods", Apply: func(w *World) { w.Scale(web, 1) }},
		{
			Name: "ScalingUp", Reason: "the pods of before are ready, and more are pending",
			Apply: func(w *World) { w.Counts(web, 5, 3); w.Put(web, "metadata.generation", 2) },
		},
		{Name: "OwnerChangedSet", Reason: "the owner changed the template", Apply: func(w *World) {
			w.Put(db, "metadata.generation", 2)
			w.Put(db, "status.updateRevision", "db-2")
		}},
		{Name: "SetScaled", Reason: "the owner added a replica", Apply: func(w *World) { w.Put(db, "metadata.generation", 2); w.Scale(db, 4) }},
		{Name: "OneRestart", Reason: "each pod restarted once, when its node did", Apply: func(w *World) {
			for _, pod := range w.Pods(web) {
				w.Restarts(pod, 1, 80*time.Minute)
			}
		}},
		{
			Name: "Settled", Reason: "a pod restarted until the API server was reachable",
			Apply: func(w *World) { w.Restarts(w.Pods(web)[0], 5, 75*time.Minute) },
		},
	}
}

// innocentsOfCluster are what administrators, users and OLM do besides.
func innocentsOfCluster() []Case {
	web, mail := deployment("shop", "web"), deployment("shop", "mail")
	return []Case{
		{Name: "PausedPool", Reason: "an administrator paused the pool", Apply: func(w *World) {
			w.Put(pool("infra"), "spec.paused", true)
			w.Put(pool("infra"), "status.updatedMachineCount", 0)
			w.Condition(pool("infra"), "Updated", "False", "Paused", 3*time.Hour)
		}},
		{
			Name: "Cordoned", Reason: "an administrator cordoned a node",
			Apply: func(w *World) { w.Put(node("worker-2"), "spec.unschedulable", true) },
		},
		{Name: "NewWorkload", Reason: "a user created what does not start", Apply: func(w *World) {
			w.Workload("Deployment", "shop", "new", 1)
			w.down(deployment("shop", "new"), 1, "ImagePullBackOff")
		}},
		{Name: "NewRoute", Reason: "a user created a Route that is not admitted", Apply: func(w *World) {
			w.AddRoute("shop", "new")
			w.Admit(Ref{Kind: "Route", Namespace: "shop", Name: "new"}, "False", broken)
		}},
		{Name: "Deleted", Reason: "a user deleted a workload", Apply: func(w *World) {
			for _, ref := range append(w.Pods(mail), mail, Ref{Kind: "Service", Namespace: "shop", Name: "mail"},
				Ref{Kind: "Route", Namespace: "shop", Name: "mail"}) {
				w.Delete(ref)
			}
		}},
		{
			Name: "MachineReplaced", Reason: "a Machine was replaced by another",
			Apply: func(w *World) { w.Delete(node("worker-2")); w.AddNode("worker-9") },
		},
		{Name: "NoProvisioner", Reason: "a claim waits for its first consumer", Apply: func(w *World) {
			w.Set(Ref{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "later"},
				`{"metadata":{"creationTimestamp":"`+w.At(broken)+`"},"spec":{"storageClassName":"gp3-csi"},"status":{"phase":"Pending"}}`)
		}},
		{Name: "NextUpdate", Reason: "alerts about the next update", Apply: func(w *World) {
			w.Fire("UpdateAvailable", "openshift-cluster-version", "info", broken)
			w.Fire("ClusterNotUpgradeable", "openshift-cluster-version", "warning", broken)
			w.Fire("APIRemovedInNextReleaseInUse", "", "warning", broken)
			w.Fire("Watchdog", "openshift-monitoring", "none", broken)
		}},
		{
			Name: "FiredEarlier", Reason: "the alert fired before the update began",
			Apply: func(w *World) { w.Fire("KubeJobFailed", "shop", "warning", 200*time.Minute) },
		},
		{
			Name: "NotUpgradeable", Reason: "an operator does not permit the next update",
			Apply: func(w *World) { w.Condition(operator("etcd"), "Upgradeable", "False", "Backup", broken) },
		},
		{
			Name: "LeaderMoved", Reason: "another pod leads, so that it is newer",
			Apply: func(w *World) { w.Replace(deployment("openshift-apiserver", "apiserver"), 3, 10*time.Minute) },
		},
		{Name: "PodEvicted", Reason: "a pod was moved to another node", Apply: func(w *World) { w.Replace(web, 3, 6*time.Minute) }},
		{Name: "WorkloadOfReleaseGone", Reason: "the release no longer has a workload", Apply: func(w *World) {
			ref := deployment("openshift-ovn-kubernetes", "ovnkube-control-plane")
			for _, each := range append(w.Pods(ref), ref, Ref{Kind: "Service", Namespace: ref.Namespace, Name: ref.Name}) {
				w.Delete(each)
			}
		}},
		{Name: "OperatorUpdated", Reason: "OLM updated an operator", Apply: func(w *World) {
			w.Delete(Ref{Kind: "ClusterServiceVersion", Namespace: "operators", Name: "widget.v1.2.3"})
			w.Set(Ref{Kind: "ClusterServiceVersion", Namespace: "operators", Name: "widget.v1.3.0"}, `{"status":{"phase":"Succeeded"}}`)
		}},
		{Name: "DriverRemoved", Reason: "an administrator removed a driver from the cluster", Apply: func(w *World) {
			w.Delete(Ref{Kind: "CSIDriver", Name: "ebs.csi.aws.com"})
			for _, name := range w.All("CSINode") {
				w.Set(name, `{"spec":{"drivers":[]}}`)
			}
		}},
		{Name: "Signed", Reason: "a request was approved", Apply: func(w *World) {
			w.Set(Ref{Kind: "CertificateSigningRequest", Name: "csr-9"}, `{"metadata":{"creationTimestamp":"`+w.At(broken)+
				`"},"spec":{"signerName":"kubernetes.io/kubelet-serving","request":"","usages":["server auth"]},"status":{"conditions":[{"type":"Approved","status":"True"}]}}`)
		}},
		{
			Name: "WebhookScaledToZero", Reason: "the owner stopped the webhook",
			Apply: func(w *World) { w.Scale(deployment("policy", "webhook"), 0) },
		},
	}
}

// BadBefore are changes of the cluster before the update, which are bad as much after it.
func BadBefore() []Case {
	web := deployment("shop", "web")
	return []Case{
		{Name: "CrashedBefore", Reason: "it crashed before", Apply: func(w *World) { w.down(web, 2, "CrashLoopBackOff") }},
		{
			Name: "DegradedBefore", Reason: "it was degraded before",
			Apply: func(w *World) { w.Condition(operator("storage"), "Degraded", "True", "Disk", 5*time.Hour) },
		},
		{Name: "FiringBefore", Reason: "it fired before", Apply: func(w *World) { w.Fire("TargetDown", "shop", "warning", 5*time.Hour) }},
		{Name: "RouteBefore", Reason: "it was not admitted before", Apply: func(w *World) {
			w.Admit(Ref{Kind: "Route", Namespace: "shop", Name: "web"}, "False", 5*time.Hour)
		}},
	}
}

// String names a case.
func (c Case) String() string { return fmt.Sprintf("%s: %s", c.Name, c.Reason) }

// Touched are the objects that a case changes, and what depends on them: cases that share one are not combined.
func Touched(c Case) []Ref {
	world := New(Noon())
	world.Update()
	changed := world.Clone()
	c.Apply(changed)
	var refs []Ref
	add := func(ref Ref) {
		switch ref.Kind {
		case "Pod", "ReplicaSet", "EndpointSlice", "Service":
			ref.Kind = "Workload"
			ref.Name, _, _ = strings.Cut(ref.Name, "-")
		case "Deployment", "StatefulSet", "DaemonSet":
			refs = append(refs, Ref{Kind: "Workload", Namespace: ref.Namespace, Name: strings.Split(ref.Name, "-")[0]})
		}
		refs = append(refs, ref)
	}
	for ref, object := range changed.objects {
		if !reflect.DeepEqual(object, world.objects[ref]) {
			add(ref)
		}
	}
	for ref := range world.objects {
		if changed.objects[ref] == nil {
			add(ref)
		}
	}
	for _, each := range changed.alerts[len(world.alerts):] { // which name no workload
		for _, ref := range slices.Concat(world.All("Deployment"), world.All("StatefulSet"), world.All("DaemonSet")) {
			if ref.Namespace == each.Namespace {
				add(ref)
			}
		}
	}
	return refs
}
