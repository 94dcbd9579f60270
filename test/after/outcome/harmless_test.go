package outcome_test

import (
	"fmt"
	"time"

	"github.com/openshift/update-preflight/test/after"
)

// harmlessUsers are what users stop.
func harmlessUsers() []row {
	canary, machine, ray := in("Rollout shop/canary"), in("VirtualMachine shop/vm"), in("RayCluster shop/ray")
	return []row{
		{name: "01Stopped", reason: "their owner stopped them", before: func(w *after.World) {
			rollout(w, "shop", "canary", 3)
			with(w, text(machine),
				`{"spec":{"runStrategy":"Always","template":{}},"status":{"ready":true,"created":true,"printableStatus":"Running","observedGeneration":1}}`,
				"Ready=True")
			put(w, text(ray),
				`{"spec":{"suspend":false},"status":{"state":"ready","desiredWorkerReplicas":3,"availableWorkerReplicas":3,"readyWorkerReplicas":3,"observedGeneration":1}}`)
			pods(w, ray, 3, long)
			service(w, "shop", "ray", 3)
		}, change: func(w *after.World) {
			stop(w, canary)
			w.Put(machine, "spec.runStrategy", "Halted")
			w.Put(machine, "status.ready", false)
			w.Put(machine, "status.created", false)
			w.Put(machine, "status.printableStatus", "Stopped")
			conditions(w, machine, since, "Ready=False/VMINotExists")
			edited(w, machine, "virtctl", since)
			w.Put(ray, "spec.suspend", true)
			w.Put(ray, "status", map[string]any{
				"state": "suspended", "desiredWorkerReplicas": int64(0), "availableWorkerReplicas": int64(0),
				"readyWorkerReplicas": int64(0), "observedGeneration": int64(1),
			})
			pods(w, ray, 0, 0)
			w.Endpoints("shop", "ray", 0)
			edited(w, ray, "kubectl-edit", since)
		}, answer: answer{listed: refs(canary, machine, ray)}},
	}
}

// harmlessNew are what they install.
func harmlessNew() []row {
	return []row{
		{name: "02NewOperator", reason: "a user installed it after the update", change: func(w *after.World) {
			made(w, "Subscription openshift-operators/gadget", 50*time.Minute,
				`{"spec":{"name":"gadget","source":"community-operators","sourceNamespace":"openshift-marketplace"},"status":{"state":"AtLatestKnown","installedCSV":"gadget.v1.0.0","currentCSV":"gadget.v1.0.0"}}`)
			made(w, "ClusterServiceVersion openshift-operators/gadget.v1.0.0", 50*time.Minute,
				`{"status":{"phase":"Failed","reason":"InstallCheckFailed","lastTransitionTime":"`+w.At(45*time.Minute)+`"}}`)
			broke(w, "openshift-operators", "gadget-operator", "ImagePullBackOff", 50*time.Minute)
		}, answer: answer{listed: refs(in("Deployment openshift-operators/gadget-operator"))}},
		{name: "03NewLogging", reason: "an administrator installed it, without storage yet", change: func(w *after.World) {
			stack := made(w, "LokiStack openshift-logging/logging-loki", since,
				`{"spec":{"size":"1x.small","storageClassName":"later"},"status":{}}`)
			conditions(w, stack, since, "Ready=False/PendingComponents", "Pending=True/PendingComponents")
			made(w, "PersistentVolumeClaim openshift-logging/storage-logging-loki-ingester-0", since,
				`{"spec":{"storageClassName":"later"},"status":{"phase":"Pending"}}`)
			broke(w, "openshift-logging", "logging-loki-querier", "ContainerCreating", since)
		}, answer: answer{listed: refs(in("LokiStack openshift-logging/logging-loki"))}},
		{name: "04KubeOps", reason: "a name that begins with kube- is no proof", change: func(w *after.World) {
			broke(w, "kube-ops", "janitor",
				"CrashLoopBackOff", since)
		}, answer: answer{listed: refs(in("Deployment kube-ops/janitor"))}},
	}
}

// harmlessChanged are what they change.
func harmlessChanged() []row {
	argo, route, db := in("ArgoCD openshift-gitops/openshift-gitops"), in("Route shop/web"), in("StatefulSet shop/db")
	return []row{
		{name: "05ArgoCD", reason: "its owner changed its resource", before: func(w *after.World) {
			put(w, text(argo), `{"spec":{"server":{"resources":{}}},"status":{"phase":"Available","server":"Running"}}`)
			w.Workload("Deployment", "openshift-gitops", "openshift-gitops-server", 1)
			w.Put(in("Deployment openshift-gitops/openshift-gitops-server"), "metadata.ownerReferences",
				[]any{map[string]any{
					"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "name": argo.Name, "uid": string(w.Object(argo).GetUID()),
					"controller": true,
				}})
		}, change: func(w *after.World) {
			server := in("Deployment openshift-gitops/openshift-gitops-server")
			edited(w, argo, "kubectl-edit", since)
			edited(w, server, "argocd-operator", since)
			w.Put(server, "metadata.annotations", map[string]any{"deployment.kubernetes.io/revision": "2"})
			w.Replace(server, 1, since)
			down(w, server, 1, "CrashLoopBackOff", since)
			w.Put(argo, "spec.server.image", "example.com/none")
			w.Put(argo, "status.phase", "Pending")
			w.Put(argo, "status.server", "Failed")
		}, answer: answer{listed: refs(in("Deployment openshift-gitops/openshift-gitops-server"))}},
		{name: "06NodeDeleted", reason: "an administrator drained it, and deleted it then", looks: []time.Duration{
			70 * time.Minute,
			60 * time.Minute, 45 * time.Minute, 25 * time.Minute, 5 * time.Minute, 0,
		}, at: func(w *after.World, before time.Duration) {
			infra := in("Node infra-0")
			switch {
			case before >= time.Hour:
				w.Put(infra, "spec.unschedulable", true)
				w.Put(infra, "spec.taints", []any{map[string]any{
					"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule",
					"timeAdded": w.At(since),
				}})
				w.Managed(infra, "kubectl-cordon", "Update", since)
			case w.Exists(infra):
				gone(w, infra, in("CSINode infra-0"))
				shrink(w, "infra", 0)
			}
		}, answer: answer{listed: refs(in("Node infra-0"))}},
		{name: "07Traffic", reason: "it is about the users of a shop at night", change: func(w *after.World) {
			w.Fire("TrafficLow", "shop",
				"warning", since)
		}, answer: answer{listed: refs(in("Alert shop/TrafficLow/warning"))}},
		{
			name: "08RouteHost", reason: "its owner chose a host that another one has",
			before: func(w *after.World) { w.Put(route, "spec.host", "web.example.com") }, change: func(w *after.World) {
				w.Put(route, "spec.host", "api.example.com")
				w.Put(route, "status.ingress", []any{map[string]any{
					"host": "api.example.com", "routerName": "default",
					"conditions": []any{map[string]any{
						"type": "Admitted", "status": "False", "reason": "HostAlreadyClaimed",
						"message": "route api already exposes api.example.com and is older", "lastTransitionTime": w.At(since),
					}},
				}})
				w.Managed(route, "kubectl-patch", "Update", since)
			}, answer: answer{listed: refs(route)},
		},
		{name: "10SetMadeAgain", reason: "its owner deleted it with orphans, and made it again", change: func(w *after.World) {
			made(w, text(db), since,
				`{"spec":{"replicas":3,"serviceName":"db","selector":{"matchLabels":{"app":"db"}},"template":{"metadata":{"labels":{"app":"db"}},"spec":{"containers":[{"name":"main","image":"other"}]}}},"status":{"observedGeneration":1,"currentRevision":"db-9","updateRevision":"db-9"}}`)
			w.Replace(db, 3, 70*time.Minute)
			w.Counts(db, 3, 3)
			down(w, db, 1, "ImagePullBackOff", 70*time.Minute)
		}, answer: answer{listed: refs(db)}},
		{name: "13PullSecret", reason: "it is since five days after the update, not by it", looks: append(every(24*time.Hour, 0, -96*time.Hour),
			-118*time.Hour, -119*time.Hour, -119*time.Hour-30*time.Minute, -120*time.Hour), at: func(w *after.World, before time.Duration) {
			if api := in("Deployment shop/api"); before == -118*time.Hour {
				w.Replace(api, 3, -117*time.Hour-50*time.Minute)
				down(w, api, 2, "ImagePullBackOff", -117*time.Hour-50*time.Minute)
			}
		}, answer: answer{listed: refs(in("Deployment shop/api"))}},
	}
}

// harmlessLeft are what is left of what users deleted.
func harmlessLeft() []row {
	const external = "APIService v1beta1.external.metrics.k8s.io"
	return []row{
		{name: "09Terminating", reason: "its owner deleted the namespace, which a finalizer keeps", before: func(w *after.World) {
			for _, name := range []string{"one", "two"} {
				w.Workload("Deployment", "leaving", name, 2)
			}
		}, change: func(w *after.World) {
			home := in("Namespace leaving")
			w.Put(home, "metadata.deletionTimestamp", w.At(since))
			w.Put(home, "status.phase", "Terminating")
			conditions(w, home, since, "NamespaceDeletionDiscoveryFailure=False/ResourcesDiscovered",
				"NamespaceFinalizersRemaining=True/SomeFinalizersRemain", "NamespaceContentRemaining=True/SomeResourcesRemain")
			for _, each := range w.Refs("Deployment", "leaving", "") {
				for _, pod := range w.Pods(each) {
					w.Delete(pod)
				}
				w.Counts(each, 2, 0)
				w.Endpoints("leaving", each.Name, 0)
				conditions(w, each, since, "Available=False/MinimumReplicasUnavailable", "ReplicaFailure=True/FailedCreate")
			}
		}, answer: answer{listed: refs(in("Namespace leaving"))}},
		{name: "11Uninstalled", reason: "an administrator deleted what serves them", before: func(w *after.World) {
			w.Workload("Deployment", "keda", "keda-operator-metrics-apiserver", 1)
			with(w, external,
				`{"spec":{"group":"external.metrics.k8s.io","version":"v1beta1","service":{"namespace":"keda","name":"keda-operator-metrics-apiserver"}}}`,
				"Available=True/Passed")
			w.Workload("Deployment", "kyverno", "kyverno-svc", 1)
			put(w, "ValidatingWebhookConfiguration kyverno",
				`{"webhooks":[{"name":"validate.kyverno.svc-fail","admissionReviewVersions":["v1"],"sideEffects":"NoneOnDryRun","failurePolicy":"Fail","clientConfig":{"caBundle":"Y2E=","service":{"namespace":"kyverno","name":"kyverno-svc"}},"rules":[{"apiGroups":["example.com"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["widgets"]}]}]}`)
		}, change: func(w *after.World) {
			uninstall(w, "keda", "keda-operator-metrics-apiserver")
			uninstall(w, "kyverno", "kyverno-svc")
			conditions(w, in(external), since, "Available=False/ServiceNotFound")
		}, answer: answer{listed: refs(in(external), in("ValidatingWebhookConfiguration kyverno"))}},
	}
}

// kill has a worker be dead for 20 days, with its pods.
func kill(w *after.World) {
	dead := in("Node worker-2")
	conditions(w, dead, 20*24*time.Hour, "Ready=Unknown/NodeStatusUnknown")
	move(w, "worker-2", "worker-0")
	for _, each := range []string{"DaemonSet openshift-dns/dns-default", "DaemonSet openshift-cluster-csi-drivers/aws-ebs-csi-driver-node"} {
		pod := w.Pods(in(each))[2]
		w.Put(pod, "spec.nodeName", dead.Name)
		w.Put(pod, "status", map[string]any{"phase": "Pending"})
		conditions(w, pod, 20*24*time.Hour, "PodScheduled=True")
		w.Counts(in(each), 7, 6)
		w.Endpoints(in(each).Namespace, in(each).Name, 6)
	}
	worker := in("MachineConfigPool worker")
	w.Put(worker, "status.readyMachineCount", 2)
	w.Put(worker, "status.unavailableMachineCount", 1)
	conditions(w, worker, 20*24*time.Hour, "Updated=False", "Updating=True/Rendered")
}

// harmlessNodes are about a node that was dead before, and what has less room than before.
func harmlessNodes() []row {
	const api = "Deployment shop/api"
	dead := in("Node worker-2")
	return []row{
		{name: "12DeadBefore", reason: "a node was dead before, and nothing is worse", before: kill, change: func(w *after.World) {
			kill(w)
			worker := in("MachineConfigPool worker")
			w.Put(worker, "status.updatedMachineCount", 2)
			w.Annotate(dead, map[string]string{
				"machineconfiguration.openshift.io/currentConfig": "rendered-1",
				"machineconfiguration.openshift.io/desiredConfig": "rendered-1", "machineconfiguration.openshift.io/desiredDrain": "uncordon-1",
				"machineconfiguration.openshift.io/lastAppliedDrain": "uncordon-1",
			})
			w.Put(dead, "status.nodeInfo.kubeletVersion", "v1.31.1")
			w.Put(dead, "status.nodeInfo.bootID", "boot-1-worker-2")
		}, answer: answer{asBefore: refs(dead)}},
		{name: "15Budget", reason: "a scaling leaves no disruption allowed", before: func(w *after.World) {
			autoscaler(w, "api")
			with(w, "PodDisruptionBudget shop/api",
				`{"spec":{"minAvailable":2,"selector":{"matchLabels":{"app":"api"}}},"status":{"observedGeneration":1,"disruptionsAllowed":1,"currentHealthy":3,"desiredHealthy":2,"expectedPods":3}}`,
				"DisruptionAllowed=True/SufficientPods")
		}, change: func(w *after.World) {
			w.Scale(in(api), 2)
			edited(w, in(api), "kube-controller-manager", since)
			budget := in("PodDisruptionBudget shop/api")
			for field, value := range map[string]int{"disruptionsAllowed": 0, "currentHealthy": 2, "expectedPods": 2} {
				w.Put(budget, "status."+field, value)
			}
			conditions(w, budget, since, "DisruptionAllowed=False/InsufficientPods")
			w.Fire("PodDisruptionBudgetAtLimit", "shop", "warning", since)
		}, answer: answer{listed: refs(in("Alert shop/PodDisruptionBudgetAtLimit/warning"))}},
		{name: "16MachineSetScaled", reason: "an administrator has fewer machines", change: func(w *after.World) {
			workers, web := in("MachineSet openshift-machine-api/workers"), in("Deployment shop/web")
			w.Put(workers, "spec.replicas", 2)
			for _, field := range []string{"replicas", "readyReplicas", "availableReplicas"} {
				w.Put(workers, "status."+field, 2)
			}
			edited(w, workers, "kubectl-scale", since)
			gone(w, in("Node worker-2"), in("CSINode worker-2"))
			for _, pod := range w.Pods(web)[:1] {
				w.Put(pod, "spec.nodeName", "")
				w.Put(pod, "status", map[string]any{"phase": "Pending"})
				conditions(w, pod, since, "PodScheduled=False/Unschedulable")
			}
			w.Counts(web, 3, 2)
			w.Endpoints("shop", "web", 2)
			for _, each := range []string{"DaemonSet openshift-dns/dns-default", "DaemonSet openshift-cluster-csi-drivers/aws-ebs-csi-driver-node"} {
				w.Scale(in(each), 6)
			}
			shrink(w, "worker", 2)
			move(w, "worker-2", "worker-0")
		}, answer: answer{listed: refs(in("Deployment shop/web"))}},
	}
}

// uninstall deletes a namespace with its only workload.
func uninstall(w *after.World, namespace, name string) {
	gone(w, in("Deployment "+namespace+"/"+name), in("Service "+namespace+"/"+name), in("EndpointSlice "+namespace+"/"+name+"-1"),
		in("Namespace "+namespace))
}

// harmlessScaled are what controllers do, which is right today.
func harmlessScaled() []row {
	web, canary := in("Deployment shop/web"), in("Rollout shop/canary")
	return []row{
		{
			name: "14HPAUp", reason: "the autoscaler added pods", before: func(w *after.World) { autoscaler(w, "web") },
			change: func(w *after.World) { scaled(w, web, 8) },
		},
		{
			name: "14HPADown", reason: "the autoscaler removed pods", before: func(w *after.World) { autoscaler(w, "web") },
			change: func(w *after.World) { scaled(w, web, 2) },
		},
		{name: "14RolledOut", reason: "its owner rolled it out", change: func(w *after.World) {
			edited(w, web, "kubectl-set", since)
			w.Put(web, "metadata.annotations", map[string]any{"deployment.kubernetes.io/revision": "2"})
			w.Replace(web, 3, since)
		}},
		{
			name: "14BlueGreen", reason: "the Service selects the pods of the new color",
			before: func(w *after.World) { rollout(w, "shop", "canary", 3) }, change: func(w *after.World) {
				edited(w, canary, "kubectl-argo-rollouts", since)
				gone(w, in("ReplicaSet shop/canary"))
				set := made(w, "ReplicaSet shop/canary-2", since, `{"metadata":{"labels":{"app":"canary"},"ownerReferences":[`+w.Owner(canary)+
					`]},"spec":{"selector":{"matchLabels":{"app":"canary"}}}}`)
				w.Counts(set, 3, 3)
				pods(w, set, 3, since)
			},
		},
		{name: "14KnativeToZero", reason: "no request came", before: func(w *after.World) { knative(w, 1) }, change: func(w *after.World) {
			w.Scale(in("Deployment shop/hello-00001"), 0)
			edited(w, in("Deployment shop/hello-00001"), "autoscaler", since)
		}},
		{name: "14KEDAToZero", reason: "the queue is empty", before: func(w *after.World) {
			with(w, "ScaledObject shop/mail",
				`{"spec":{"minReplicaCount":0,"scaleTargetRef":{"name":"mail"},"triggers":[{"type":"kafka"}]},"status":{"originalReplicaCount":3,"hpaName":"keda-hpa-mail"}}`,
				"Ready=True/ScaledObjectReady", "Active=True/ScalerActive", "Fallback=False/NoFallbackFound", "Paused=Unknown")
		}, change: func(w *after.World) {
			w.Scale(in("Deployment shop/mail"), 0)
			edited(w, in("Deployment shop/mail"), "keda", since)
			conditions(w, in("ScaledObject shop/mail"), since, "Active=False/ScalerNotActive")
		}},
		{name: "14Spot", reason: "a machine of the spot market was replaced", change: func(w *after.World) {
			gone(w, in("Node worker-2"), in("CSINode worker-2"))
			w.AddNode("worker-9")
			move(w, "worker-2", "worker-9")
			for field, value := range map[string]string{"bootID": "boot-2-worker-9", "kubeletVersion": "v1.31.2"} {
				w.Put(in("Node worker-9"), "status.nodeInfo."+field, value)
			}
			w.Put(in("Node worker-9"), "metadata.creationTimestamp", w.At(since))
			w.Annotate(in("Node worker-9"), map[string]string{
				"machineconfiguration.openshift.io/currentConfig": "rendered-2",
				"machineconfiguration.openshift.io/desiredConfig": "rendered-2",
			})
			conditions(w, in("Node worker-9"), since, "Ready=True/KubeletReady")
		}},
		{name: "14Reboot", reason: "an administrator rebooted a node, whose pods restarted once more", change: func(w *after.World) {
			w.Put(in("Node worker-1"), "status.nodeInfo.bootID", "boot-3-worker-1")
			conditions(w, in("Node worker-1"), since, "Ready=True/KubeletReady")
			w.Restarts(w.Pods(web)[1], 2, since)
		}},
		{name: "14Catalog", reason: "the pod of a catalog is replaced each time it is polled", before: func(w *after.World) {
			with(w, "Pod openshift-marketplace/community-1", catalogPod(w, long), "Ready=True")
		}, change: func(w *after.World) {
			gone(w, in("Pod openshift-marketplace/community-1"))
			with(w, "Pod openshift-marketplace/community-2", catalogPod(w, 20*time.Minute), "Ready=True")
		}},
	}
}

// scaled has an autoscaler scale a Deployment.
func scaled(w *after.World, of after.Ref, replicas int) {
	w.Scale(of, replicas)
	edited(w, of, "kube-controller-manager", since)
	w.Put(in("HorizontalPodAutoscaler shop/"+of.Name), "status.currentReplicas", replicas)
	w.Put(in("HorizontalPodAutoscaler shop/"+of.Name), "status.desiredReplicas", replicas)
}

// knative makes a Service of Knative with its Deployment.
func knative(w *after.World, replicas int) {
	with(w, "Service.serving.knative.dev shop/hello",
		`{"spec":{"template":{}},"status":{"observedGeneration":1,"url":"https://hello.example.com","latestReadyRevisionName":"hello-00001","latestCreatedRevisionName":"hello-00001"}}`,
		"Ready=True", "ConfigurationsReady=True", "RoutesReady=True")
	w.Workload("Deployment", "shop", "hello-00001", replicas)
}

func catalogPod(w *after.World, age time.Duration) string {
	return fmt.Sprintf(
		`{"metadata":{"creationTimestamp":%q,"labels":{"olm.catalogSource":"community"},"ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","kind":"CatalogSource","name":"community","uid":"c","controller":true}]},"spec":{"nodeName":"worker-0","containers":[{"name":"main"}]},"status":{"phase":"Running","containerStatuses":[{"name":"main","ready":true,"restartCount":0,"state":{"running":{"startedAt":%[1]q}}}]}}`, w.At(age))
}
