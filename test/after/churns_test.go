package after_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// churn is a change that a cluster shows within an hour, whether or not it is updated, and that harms nothing.
type churn struct {
	reason string
	// kind is that of objects that it changes.
	kind  string
	apply func(*recording)
	// young are the problems that it has for some minutes, and ended those of before that it ends.
	young, ended []string
	// beside is the churn beside which it looks like a regression.
	beside string
	// waits is true where the rollout of an update waits for it.
	waits bool
}

// churns are all of them by name. Each has objects of its own, so that they can be combined.
func churns() map[string]churn {
	all := map[string]churn{}
	for _, some := range []map[string]churn{
		churnOfPods(), churnOfPlatform(), churnOfNodes(), churnOfWorkloads(), churnOfObjects(),
		churnOfOperators(),
	} {
		maps.Copy(all, some)
	}
	return all
}

// churnOfPods is what happens to pods that end, or that belong to no workload.
func churnOfPods() map[string]churn {
	return map[string]churn{
		"CronJobRan": {
			reason: "the pod of its run has completed, and that of an earlier one was deleted", kind: "Pod",
			apply: func(r *recording) {
				r.delete(r.get("Pod", "shop", "report-1-x"))
				r.set(jobPod("shop", "report-2-x", "report-2", "Succeeded", r.at(40*time.Minute)))
				r.put(r.get("CronJob", "shop", "report"), "status.lastScheduleTime", r.at(40*time.Minute))
			},
		},
		"JobCompleted": {reason: "the Job has done its work", kind: "Job", apply: func(r *recording) {
			r.put(r.get("Job", "shop", "import"), "status", map[string]any{"succeeded": int64(1), "completionTime": r.at(10 * time.Minute)})
			r.put(r.get("Pod", "shop", "import-x"), "status.phase", "Succeeded")
		}},
		"JobServed": {
			reason: "the only pod of a Service was that of a Job, which has completed", kind: "EndpointSlice",
			apply: func(r *recording) {
				r.put(r.get("Job", "shop", "train"), "status", map[string]any{"succeeded": int64(1), "completionTime": r.at(50 * time.Minute)})
				r.put(r.get("Pod", "shop", "train-x"), "status.phase", "Succeeded")
				r.serve("shop", "train", 0)
			},
		},
		"JobFailed": {
			reason: "a Job failed, as it does at any time, or because its pod was drained; it stays failed", kind: "Alert",
			apply: func(r *recording) {
				r.fire("KubeJobFailed", "shop", "firing", 50*time.Minute)
			},
		},
		"BarePodDeleted": {
			reason: "the only pod of a Service had no owner, and its owner deleted it, or a drain did", kind: "EndpointSlice",
			apply: func(r *recording) {
				r.delete(r.get("Pod", "shop", "debug"))
				r.serve("shop", "debug", 0)
			},
		},
		"Installers": {reason: "static pods are installed, and earlier installers are pruned", kind: "Pod", apply: func(r *recording) {
			for _, each := range r.in("Pod", "openshift-kube-apiserver", "installer-") {
				r.delete(each)
			}
			for _, each := range []string{"installer-9-master-0", "revision-pruner-9-master-0"} {
				r.set(fmt.Sprintf(
					`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"openshift-kube-apiserver","creationTimestamp":%q,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"revision-status-9","uid":"1"}]},"spec":{"nodeName":"master-0","containers":[{"name":"installer"}]},"status":{"phase":"Succeeded"}}`, each, r.at(30*time.Minute)))
			}
			r.put(r.get("Pod", "openshift-kube-apiserver", "kube-apiserver-master-0"), "metadata.labels", map[string]any{"revision": "9"})
		}},
		"CatalogPods": {reason: "each poll of a catalog makes another pod", kind: "Pod", apply: func(r *recording) {
			for _, each := range r.in("Pod", "openshift-marketplace", "redhat-operators-") {
				r.rename(each, "redhat-operators-"+r.suffix(), 20*time.Minute)
			}
		}},
		"CatalogPolled": {
			reason: "the pod of a catalog was made just now", kind: "Pod",
			young: []string{
				"CatalogSource openshift-marketplace/certified-operators ContainerCreating",
				"Service openshift-marketplace/certified-operators NoReadyEndpoints",
			}, apply: func(r *recording) {
				for _, each := range r.in("Pod", "openshift-marketplace", "certified-operators-") {
					r.unready(r.rename(each, "certified-operators-"+r.suffix(), 20*time.Second), "ContainerCreating")
				}
				r.serve("openshift-marketplace", "certified-operators", 0)
			},
		},
		"Evicted": {reason: "a failed pod of a workload stays, beside the one in its place", kind: "Pod", apply: func(r *recording) {
			failed := r.in("Pod", "shop", "evicted-")[0].DeepCopy()
			failed.SetName("evicted-1-failed")
			r.put(failed, "metadata.uid", "")
			r.put(failed, "status", map[string]any{"phase": "Failed", "reason": "Evicted"})
			r.add(failed)
		}},
		"Restarted": {reason: "some containers restart once", kind: "Pod", apply: func(r *recording) {
			for _, each := range slices.Concat(r.in("Pod", "openshift-operator-lifecycle-manager", ""), r.in("Pod", "shop", "restarted-"),
				r.in("Pod", "openshift-kube-apiserver", "kube-apiserver-")) {
				r.restart(each, 20*time.Minute)
			}
		}},
	}
}

// churnOfPlatform is what operators of the release do by themselves.
func churnOfPlatform() map[string]churn {
	return map[string]churn{
		"LeaderMoved": {reason: "another replica leads", kind: "Lease", apply: func(r *recording) {
			for _, each := range r.all("Lease") {
				r.put(each, "spec", map[string]any{
					"holderIdentity": "other-" + r.suffix(), "renewTime": r.at(time.Second),
					"leaseTransitions": int64(9),
				})
			}
			for _, each := range r.all("ConfigMap") {
				if each.GetAnnotations()["control-plane.alpha.kubernetes.io/leader"] != "" {
					each.SetAnnotations(map[string]string{"control-plane.alpha.kubernetes.io/leader": `{"holderIdentity":"other"}`})
				}
			}
		}},
		"OperatorsStated": {
			reason: "messages and times change with each look of an operator", kind: "ClusterOperator",
			apply: func(r *recording) {
				for _, each := range r.all("ClusterOperator") {
					r.conditions(each, func(condition map[string]any) {
						condition["message"] = "All is well, as of " + r.at(time.Minute)
						if condition["type"] != "Progressing" {
							condition["lastTransitionTime"] = r.at(7 * time.Minute)
						}
					})
				}
			},
		},
		"PlatformRolledOut": {
			reason: "a certificate was rotated, so that an operator rolled its Deployment out", kind: "Deployment",
			apply: func(r *recording) {
				r.rollOut(r.get("Deployment", "openshift-operator-lifecycle-manager", "catalog-operator"), 25*time.Minute)
			},
		},
		"SlicesRenumbered": {reason: "a Service was created again with other slices", kind: "EndpointSlice", apply: func(r *recording) {
			for _, each := range r.in("EndpointSlice", "shop", "sliced-") {
				next := each.DeepCopy()
				r.delete(each)
				next.SetName("sliced-" + r.suffix())
				r.add(next)
			}
		}},
		"Events": {reason: "there are always events", kind: "Event", apply: func(r *recording) {
			for i := range 5 {
				r.set(fmt.Sprintf(
					`{"apiVersion":"v1","kind":"Event","metadata":{"name":"web.%d","namespace":"shop"},"type":"Warning","reason":"BackOff","message":"Back-off restarting failed container","lastTimestamp":%q,"involvedObject":{"kind":"Pod","namespace":"shop","name":"web"}}`, i, r.at(time.Minute)))
			}
		}},
		"AlertEnded": {
			reason: "an alert that fired before has ended", kind: "Alert",
			ended: []string{"Alert openshift-dns/KubeDeploymentReplicasMismatch/warning Firing"}, apply: func(r *recording) {
				r.alerts(func(data map[string]any) {
					for key, value := range data {
						all, _ := value.([]any)
						data[key] = slices.DeleteFunc(all, func(each any) bool {
							return strings.Contains(fmt.Sprint(each),
								"KubeDeploymentReplicasMismatch")
						})
					}
				})
			},
		},
		"AlertsPending": {reason: "the condition of an alert holds, for too short a time to fire", kind: "Alert", apply: func(r *recording) {
			r.fire("KubePodNotReady", "openshift-dns", "pending", 40*time.Minute)
			r.fire("Watchdog", "openshift-monitoring", "firing", 40*time.Minute)
		}},
		"AlertFired": {
			reason: "an alert that began some minutes ago may end as soon", kind: "Alert",
			young: []string{"Alert openshift-dns/KubeAPILatencyHigh/warning Firing"}, apply: func(r *recording) {
				r.fire("KubeAPILatencyHigh", "openshift-dns", "firing", 2*time.Minute)
			},
		},
		"AlertSince": {
			reason: "the condition held before the first state, for too short a time to fire", kind: "Alert",
			apply: func(r *recording) {
				r.fire("CertificateExpires", "openshift-etcd", "firing", 6*time.Hour)
			},
		},
	}
}

// churnOfNodes is what happens to nodes.
func churnOfNodes() map[string]churn {
	return map[string]churn{
		"Heartbeats": {reason: "a kubelet reports every few minutes, and images come and go", kind: "Node", apply: func(r *recording) {
			for _, each := range r.all("Node") {
				r.conditions(each, func(condition map[string]any) { condition["lastHeartbeatTime"] = r.at(time.Minute) })
				r.put(each, "status.images", []any{map[string]any{"names": []any{"registry.example.com/a@sha256:1"}, "sizeBytes": int64(1)}})
				r.annotate(each, "example.com/scanned", r.at(time.Minute))
			}
		}},
		"NodeAdded": {reason: "the autoscaler added a Machine, whose node is ready", kind: "Node", apply: func(r *recording) {
			r.join("added-1", true, 30*time.Minute)
			r.machines("workers", 1, 1)
			r.spread(1, 1)
		}},
		"NodeJoining": {reason: "the autoscaler added a Machine, whose node is not ready yet", kind: "Node", apply: func(r *recording) {
			r.join("added-2", false, 2*time.Minute)
			r.machines("workers", 1, 0)
			r.spread(1, 0)
		}},
		"NodeRemoved": {reason: "the autoscaler removed a Machine", kind: "Node", apply: func(r *recording) {
			r.delete(r.get("Node", "", "spare-1"))
			for _, each := range r.all("Pod") {
				if name, _, _ := unstructured.NestedString(each.Object, "spec", "nodeName"); name == "spare-1" {
					r.delete(each)
				}
			}
		}},
		"NodeByHand": {
			reason: "an administrator adds a node, and has not approved its request yet", kind: "CertificateSigningRequest",
			beside: "NodeJoining", apply: func(r *recording) {
				r.request("csr-by-hand", "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
					"kubernetes.io/kube-apiserver-client-kubelet", 50*time.Minute)
				r.request("csr-by-hand-2", "system:node:metal-8", "kubernetes.io/kubelet-serving", 50*time.Minute)
			},
		},
		"NodeNeverReady": {
			reason: "the kubelet of a node that was added does not start, so that its pool is not updated", kind: "Node",
			waits: true, apply: func(r *recording) {
				r.join("added-3", false, 70*time.Minute)
				pool := r.get("MachineConfigPool", "", "worker")
				nodes, _, _ := unstructured.NestedInt64(pool.Object, "status", "machineCount")
				r.put(pool, "status.machineCount", nodes+1)
				r.condition(pool, "Updated", "False", 65*time.Minute)
			},
		},
		"Cordoned": {reason: "an administrator cordoned a node", kind: "Node", apply: func(r *recording) {
			r.put(r.get("Node", "", "cordoned-1"), "spec.unschedulable", true)
		}},
		"Requested": {
			reason: "a request of a kubelet is approved within minutes", kind: "CertificateSigningRequest",
			young: []string{"CertificateSigningRequest csr-young Pending"}, apply: func(r *recording) {
				r.request("csr-young", "system:node:cordoned-1", "kubernetes.io/kubelet-serving", time.Minute)
				r.put(r.request("csr-approved", "system:node:cordoned-1", "kubernetes.io/kubelet-serving", 50*time.Minute), "status.conditions",
					[]any{map[string]any{"type": "Approved", "status": "True"}})
			},
		},
	}
}

// churnOfWorkloads is what owners and autoscalers do to workloads.
func churnOfWorkloads() map[string]churn {
	scaled := func(name string, desired, ready int) func(*recording) {
		return func(r *recording) { r.scale("Deployment", name, desired, ready) }
	}
	return map[string]churn{
		"ScaledUp": {
			reason: "the autoscaler added pods", kind: "HorizontalPodAutoscaler",
			apply: func(r *recording) { r.autoscale("scaled-up", 5, 5) },
		},
		"ScaledDown": {
			reason: "the autoscaler removed pods", kind: "HorizontalPodAutoscaler",
			apply: func(r *recording) { r.autoscale("scaled-down", 1, 1) },
		},
		"ScalingUp": {
			reason: "the pods that the autoscaler added are not ready", kind: "HorizontalPodAutoscaler",
			apply: func(r *recording) { r.autoscale("scaling-up", 5, 3) },
		},
		"ScaledDownUp": {
			reason: "the autoscaler removed two pods, and has added one of them again", kind: "HorizontalPodAutoscaler",
			young: []string{"Deployment shop/scaled-down-up Unavailable"}, apply: func(r *recording) { r.autoscale("scaled-down-up", 2, 1) },
		},
		"Stopped": {reason: "the owner scaled it to none", kind: "Deployment", apply: scaled("stopped", 0, 0)},
		"StatefulScaled": {
			reason: "the owner removed a replica", kind: "StatefulSet",
			apply: func(r *recording) { r.scale("StatefulSet", "scaled-set", 2, 2) },
		},
		"RolledOut": {reason: "the owner rolled it out, and one pod is not ready yet", kind: "Deployment", apply: func(r *recording) {
			of := r.get("Deployment", "shop", "rolled-out")
			r.rollOut(of, 3*time.Minute)
			r.unready(r.in("Pod", "shop", "rolled-out-")[0], "ContainerCreating")
			r.counts(of, 3, 2)
		}},
		"RolledOutSet": {reason: "the owner changed the template", kind: "StatefulSet", apply: func(r *recording) {
			of := r.get("StatefulSet", "shop", "rolled-set")
			r.put(of, "metadata.generation", of.GetGeneration()+1)
			r.put(of, "status.updateRevision", "rolled-set-2")
			r.put(of, "status.currentRevision", "rolled-set-2")
		}},
		"RolledOutDaemons": {reason: "the owner changed the template", kind: "DaemonSet", apply: func(r *recording) {
			of := r.get("DaemonSet", "shop", "rolled-daemons")
			r.put(of, "metadata.generation", of.GetGeneration()+1)
			of.SetAnnotations(map[string]string{"deprecated.daemonset.template.generation": "2"})
			r.counts(of, 3, 2)
		}},
		"Deleted": {reason: "the owner deleted it, and its Service is still there", kind: "Deployment", apply: func(r *recording) {
			for _, each := range r.in("Pod", "shop", "deleted-") {
				r.delete(each)
			}
			r.delete(r.get("Deployment", "shop", "deleted"))
			r.serve("shop", "deleted", 0)
		}},
		"Created": {reason: "a user created it just now", kind: "Deployment", apply: func(r *recording) {
			r.set(fmt.Sprintf(
				`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"created","namespace":"shop","generation":1,"creationTimestamp":%q},"spec":{"replicas":2},"status":{"replicas":2}}`, r.at(time.Minute)))
		}},
	}
}

// churnOfObjects is what users do to other objects.
func churnOfObjects() map[string]churn {
	return map[string]churn{
		"ClaimResized": {
			reason: "its volume is larger, and its file system is not yet", kind: "PersistentVolumeClaim",
			apply: func(r *recording) {
				r.put(r.get("PersistentVolumeClaim", "shop", "data-db-0"), "status.conditions", []any{
					map[string]any{"type": "Resizing", "status": "True", "lastTransitionTime": r.at(30 * time.Minute)},
					map[string]any{"type": "FileSystemResizePending", "status": "True", "lastTransitionTime": r.at(30 * time.Minute)},
				})
			},
		},
		"ClaimAdded": {reason: "a claim of a user has no volume yet", kind: "PersistentVolumeClaim", apply: func(r *recording) {
			r.set(fmt.Sprintf(
				`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"added","namespace":"shop","creationTimestamp":%q},"spec":{"storageClassName":"nfs"},"status":{"phase":"Pending"}}`, r.at(time.Minute)))
		}},
		"ClaimDeleted": {reason: "a claim is being deleted, and its volume is gone", kind: "PersistentVolumeClaim", apply: func(r *recording) {
			of := r.get("PersistentVolumeClaim", "shop", "data-db-2")
			r.put(of, "metadata.deletionTimestamp", r.at(50*time.Minute))
			r.put(of, "status.phase", "Lost")
		}},
		"Routes": {reason: "a user removed a Route, and created two, of which no router admits one", kind: "Route", apply: func(r *recording) {
			r.delete(r.get("Route", "shop", "mail"))
			for name, status := range map[string]string{"admitted": "True", "refused": "False"} {
				r.set(fmt.Sprintf(
					`{"apiVersion":"route.openshift.io/v1","kind":"Route","metadata":{"name":%q,"namespace":"shop","creationTimestamp":%q},"spec":{"to":{"kind":"Service","name":"mail"}},"status":{"ingress":[{"routerName":"default","conditions":[{"type":"Admitted","status":%q,"reason":"HostAlreadyClaimed","lastTransitionTime":%q}]}]}}`, name, r.at(50*time.Minute), status, r.at(50*time.Minute)))
			}
		}},
		"NamespaceCreated": {reason: "a user created a namespace with what does not run yet", kind: "Namespace", apply: func(r *recording) {
			r.set(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"made"},"status":{"phase":"Active"}}`)
			r.set(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"made","generation":1},"spec":{"replicas":2},"status":{"replicas":2,"conditions":[{"type":"Available","status":"False","lastTransitionTime":"` + r.at(50*time.Minute) + `"}]}}`)
			r.set(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"made"},"spec":{"selector":{"app":"web"}}}`)
		}},
		"NamespaceTerminating": {
			reason: "a user deletes a namespace, of which some objects wait for a finalizer", kind: "Namespace",
			apply: func(r *recording) {
				r.put(r.get("Namespace", "", "leaving"), "status", map[string]any{"phase": "Terminating"})
				for _, each := range r.in("Pod", "leaving", "") {
					r.delete(each)
				}
				for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "Service", "Route"} {
					for _, each := range r.in(kind, "leaving", "") {
						r.put(each, "metadata.deletionTimestamp", r.at(50*time.Minute))
						each.SetFinalizers([]string{"example.com/keep"})
						switch kind {
						case "Deployment":
							r.put(each, "status", map[string]any{"conditions": []any{map[string]any{
								"type": "Available", "status": "False",
								"lastTransitionTime": r.at(50 * time.Minute),
							}}})
						case "Service":
							r.serve("leaving", each.GetName(), 0)
						case "Route":
							r.put(each, "status", map[string]any{"ingress": []any{}})
						default:
							r.counts(each, 3, 0)
						}
					}
				}
			},
		},
		"BundleRotated": {
			reason: "an operator wrote the next CA of a webhook", kind: "ValidatingWebhookConfiguration",
			apply: func(r *recording) {
				for _, each := range r.all("ValidatingWebhookConfiguration") {
					r.put(each, "metadata.generation", each.GetGeneration()+1)
					each.SetAnnotations(map[string]string{"example.com/rotated": r.at(time.Minute)})
				}
			},
		},
	}
}

// churnOfOperators is what OLM does.
func churnOfOperators() map[string]churn {
	replace := func(r *recording, namespace, phase string) {
		for _, each := range r.in("ClusterServiceVersion", namespace, "gadget") {
			next := each.DeepCopy()
			next.SetName("gadget.v2.0.0")
			r.put(next, "metadata.uid", "")
			r.put(next, "metadata.creationTimestamp", r.at(50*time.Minute))
			r.put(next, "status", map[string]any{"phase": phase, "reason": "InstallWaiting", "lastTransitionTime": r.at(50 * time.Minute)})
			if phase == "Succeeded" {
				r.delete(each)
			} else {
				r.put(each, "status.phase", "Replacing")
			}
			r.add(next)
		}
	}
	return map[string]churn{
		"OperatorReplaced": {
			reason: "OLM installed the next version", kind: "ClusterServiceVersion",
			apply: func(r *recording) { replace(r, "tools", "Succeeded") },
		},
		"OperatorReplacing": {
			reason: "OLM installs the next version", kind: "ClusterServiceVersion",
			apply: func(r *recording) { replace(r, "devices", "Installing") },
		},
		"OperatorOfOurs": {
			reason: "OLM installs the next version of an operator of a user, in the namespace that is made for all",
			kind:   "ClusterServiceVersion", apply: func(r *recording) { replace(r, "openshift-operators", "Installing") },
		},
		"SubscriptionState": {reason: "the catalog offers another version", kind: "Subscription", apply: func(r *recording) {
			r.put(r.get("Subscription", "operators", "widget"), "status.currentCSV", "widget.v1.2.4")
			r.put(r.get("Subscription", "operators", "widget"), "status.state", "UpgradePending")
		}},
	}
}

func jobPod(namespace, name, job, phase, created string) string {
	return fmt.Sprintf(
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":%q,"creationTimestamp":%q,"labels":{"app":%q},"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":%[4]q,"uid":"1","controller":true}]},"spec":{"nodeName":"worker-0","containers":[{"name":"main"}]},"status":{"phase":%[5]q}}`, name, namespace, created, job, phase)
}

// request makes a request of a kubelet for a certificate, that is neither approved nor denied.
func (r *recording) request(name, user, signer string, age time.Duration) *unstructured.Unstructured {
	return r.set(fmt.Sprintf(
		`{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":%q,"creationTimestamp":%q},"spec":{"username":%q,"signerName":%q,"usages":["client auth"]},"status":{}}`, name, r.at(age), user, signer))
}
