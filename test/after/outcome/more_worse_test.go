package outcome_test

import (
	"fmt"
	"time"

	"github.com/openshift/update-preflight/test/after"
)

// thing is an object, as its kind, namespace and name, with its content as JSON.
type thing struct{ ref, content string }

// turned is a row of an object that is good before the update, and has other conditions after it.
func turned(name, reason string, of thing, good, bad []string) row {
	return row{
		name: name, reason: reason, before: func(w *after.World) { with(w, of.ref, of.content, good...) },
		change: func(w *after.World) { conditions(w, in(of.ref), since, bad...) }, answer: answer{named: refs(in(of.ref))},
	}
}

// became is a row of an object of which one field of the status has another value after the update.
func became(name, reason string, of thing, field string, value any) row {
	return row{
		name: name, reason: reason, before: func(w *after.World) { put(w, of.ref, of.content) },
		change: func(w *after.World) { w.Put(in(of.ref), field, value) }, answer: answer{named: refs(in(of.ref))},
	}
}

func all(each ...string) []string { return each }

// nested are conditions that are not those of the object itself.
func nested(w *after.World, kind, status, reason string) []any {
	return []any{map[string]any{"type": kind, "status": status, "reason": reason, "message": reason, "lastTransitionTime": w.At(since)}}
}

// conditionsWorse are objects of users' operators whose conditions turned bad.
func conditionsWorse() []row {
	store, secret := in("ClusterSecretStore vault"), in("ExternalSecret shop/card")
	path := in("HTTPRoute shop/web")
	return []row{
		turned("Knative", "its revision does not start", thing{
			"Service.serving.knative.dev shop/hello",
			`{"spec":{"template":{}},"status":{"observedGeneration":1,"latestReadyRevisionName":"hello-00001"}}`,
		}, all("Ready=True",
			"ConfigurationsReady=True", "RoutesReady=True"), all("Ready=False/RevisionFailed", "RoutesReady=False/RevisionFailed")),
		turned("KafkaTopic", "the topic operator does not reach the brokers", thing{
			"KafkaTopic shop/orders",
			`{"spec":{"partitions":3},"status":{"observedGeneration":1,"topicName":"orders"}}`,
		}, all("Ready=True"), all("Ready=False/KafkaError")),
		turned("NodeFeatures", "nodes lose the labels by which pods are placed", thing{
			"NodeFeatureDiscovery openshift-nfd/nfd",
			`{"spec":{},"status":{}}`,
		}, all("Available=True", "Degraded=False", "Progressing=False", "Upgradeable=True"),
			all("Available=False/NFDWorkerDaemonSetDegraded", "Degraded=True/NFDWorkerDaemonSetDegraded")),
		turned("MetalLB", "no address is announced", thing{"MetalLB metallb-system/metallb", `{"spec":{},"status":{}}`}, all("Available=True",
			"Degraded=False", "Progressing=False", "Upgradeable=True"), all("Available=False/ResourceNotReady", "Degraded=True/ResourceNotReady")),
		turned("Crossplane", "its provider is not permitted to reconcile it any more", thing{
			"Bucket invoices",
			`{"spec":{"forProvider":{"region":"eu-central-1"}},"status":{"atProvider":{"id":"invoices"}}}`,
		},
			all("Ready=True/Available", "Synced=True/ReconcileSuccess"), all("Synced=False/ReconcileError")),
		turned("Prometheus", "its operator does not reconcile it", thing{
			"Prometheus openshift-monitoring/k8s",
			`{"spec":{"replicas":2},"status":{"replicas":2,"updatedReplicas":2,"availableReplicas":2,"unavailableReplicas":0}}`,
		},
			all("Available=True", "Reconciled=True"), all("Reconciled=False/ReconciliationFailed")),
		turned("Gateway", "the data plane does not serve it", thing{
			"Gateway openshift-ingress/edge",
			`{"spec":{"gatewayClassName":"openshift-default"},"status":{}}`,
		}, all("Accepted=True/Accepted", "Programmed=True/Programmed"),
			all("Programmed=False/AddressNotAssigned")),
		{name: "HTTPRoute", reason: "the condition is that of a parent", before: func(w *after.World) {
			put(w, text(path),
				`{"spec":{"parentRefs":[{"name":"edge"}]},"status":{"parents":[{"controllerName":"openshift.io/gateway-controller/v1","parentRef":{"name":"edge"},"conditions":[{"type":"Accepted","status":"True","reason":"Accepted"},{"type":"ResolvedRefs","status":"True","reason":"ResolvedRefs"}]}]}}`)
		}, change: func(w *after.World) {
			w.Put(path, "status.parents", []any{map[string]any{
				"controllerName": "openshift.io/gateway-controller/v1",
				"parentRef":      map[string]any{"name": "edge"}, "conditions": nested(w, "Accepted", "False", "NotAllowedByListeners"),
			}})
		}, answer: answer{named: refs(path)}},
		{name: "SecretStore", reason: "what the store has is not read any more, and its secrets follow", before: func(w *after.World) {
			with(w, text(store), `{"spec":{"provider":{"vault":{"server":"https://vault.example.com"}}},"status":{"capabilities":"ReadOnly"}}`,
				"Ready=True/Valid")
			with(w, text(secret), `{"spec":{"secretStoreRef":{"kind":"ClusterSecretStore","name":"vault"}},"status":{"refreshTime":"`+w.At(long)+
				`"}}`, "Ready=True/SecretSynced")
		}, change: func(w *after.World) {
			conditions(w, store, since, "Ready=False/InvalidProviderConfig")
			conditions(w, secret, since-5*time.Minute, "Ready=False/SecretSyncedError")
		}, answer: answer{named: refs(store), also: refs(secret)}},
		turned("NMState", "a network of nodes is not configured", thing{
			"NodeNetworkConfigurationPolicy bond",
			`{"spec":{"desiredState":{}},"status":{}}`,
		}, all("Available=True/SuccessfullyConfigured", "Degraded=False/SuccessfullyConfigured",
			"Progressing=False"), all("Available=False/FailedToConfigure", "Degraded=True/FailedToConfigure")),
		turned("PerformanceProfile", "its nodes have another kernel command line", thing{
			"PerformanceProfile low-latency",
			`{"spec":{"cpu":{"isolated":"2-7"}},"status":{"tuned":"openshift-cluster-node-tuning-operator/openshift-node-performance"}}`,
		},
			all("Available=True", "Degraded=False", "Progressing=False", "Upgradeable=True"),
			all("Available=False/KubeletConfigFailure", "Degraded=True/KubeletConfigFailure")),
		turned("Tuned", "the profile of one node is not applied", thing{
			"Profile openshift-cluster-node-tuning-operator/worker-1",
			`{"spec":{"config":{"tunedProfile":"openshift-node"}},"status":{"tunedProfile":"openshift-node"}}`,
		},
			all("Applied=True/AsExpected", "Degraded=False/AsExpected"), all("Applied=False/Failed", "Degraded=True/TunedError")),
		turned("HealthCheck", "too many machines are unhealthy to replace one", thing{
			"MachineHealthCheck openshift-machine-api/workers",
			`{"spec":{"maxUnhealthy":"40%"},"status":{"expectedMachines":3,"currentHealthy":3,"remediationsAllowed":1}}`,
		},
			all("RemediationAllowed=True"), all("RemediationAllowed=False/TooManyUnhealthy")),
	}
}

// phasesWorse are objects that state their health by a word.
func phasesWorse() []row {
	application, record, machine := in("Application openshift-gitops/shop"), in("DNSRecord openshift-ingress-operator/default-wildcard"),
		in("VirtualMachine shop/vm")
	volume, claim, failed := in("PersistentVolume pv-9"), in("PersistentVolumeClaim shop/scratch"),
		in("Machine openshift-machine-api/worker-1")
	return []row{
		became("Elasticsearch", "shards are lost", thing{
			"Elasticsearch shop/search",
			`{"spec":{"version":"8.15.0"},"status":{"health":"green","phase":"Ready","availableNodes":3,"version":"8.15.0","observedGeneration":1}}`,
		},
			"status.health", "red"),
		became("BackupLocation", "no backup can be stored", thing{
			"BackupStorageLocation openshift-adp/default",
			`{"spec":{"provider":"aws"},"status":{"phase":"Available"}}`,
		}, "status.phase", "Unavailable"),
		became("GPU", "no node has a driver", thing{
			"ClusterPolicy gpu-cluster-policy",
			`{"spec":{},"status":{"namespace":"nvidia-gpu-operator","state":"ready"}}`,
		}, "status.state", "notReady"),
		became("SRIOV", "the virtual functions of a node are not configured",
			thing{
				"SriovNetworkNodeState openshift-sriov-network-operator/worker-1",
				`{"spec":{},"status":{"syncStatus":"Succeeded","lastSyncError":""}}`,
			}, "status.syncStatus", "Failed"),
		became("StorageCluster", "the storage of users is in an error",
			thing{"StorageCluster openshift-storage/ocs-storagecluster", `{"spec":{},"status":{"phase":"Ready"}}`}, "status.phase", "Error"),
		{name: "VolumeDelete", reason: "its driver does not delete it any more", before: func(w *after.World) {
			put(w, text(volume),
				`{"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"storageClassName":"nfs","persistentVolumeReclaimPolicy":"Delete","claimRef":{"namespace":"shop","name":"scratch"}},"status":{"phase":"Bound"}}`)
			put(w, text(claim), `{"spec":{"storageClassName":"nfs","volumeName":"pv-9","accessModes":["ReadWriteOnce"]},"status":{"phase":"Bound"}}`)
		}, change: func(w *after.World) {
			gone(w, claim)
			w.Put(volume, "status", map[string]any{
				"phase": "Failed", "message": "rpc error: code = Internal desc = cannot delete volume",
				"lastPhaseTransitionTime": w.At(since),
			})
		}, answer: answer{named: refs(volume), also: refs(claim)}},
		{name: "Machine", reason: "its instance is gone, and its node is not ready", before: func(w *after.World) {
			put(w, text(failed), `{"spec":{},"status":{"phase":"Running","nodeRef":{"kind":"Node","name":"worker-1"}}}`)
		}, change: func(w *after.World) {
			w.Put(failed, "status.phase", "Failed")
			w.Put(failed, "status.errorMessage", "Can't find created instance.")
			conditions(w, in("Node worker-1"), since, "Ready=Unknown/NodeStatusUnknown")
		}, answer: answer{either: refs(failed, in("Node worker-1"))}},
		became("Catalog", "no operator can be installed from it", thing{
			"CatalogSource openshift-marketplace/redhat-operators",
			`{"spec":{"sourceType":"grpc"},"status":{"connectionState":{"address":"redhat-operators:50051","lastObservedState":"READY"}}}`,
		},
			"status.connectionState.lastObservedState", "TRANSIENT_FAILURE"),
		{name: "Application", reason: "Argo CD reports that what it deployed is degraded", before: func(w *after.World) {
			put(w, text(application),
				`{"spec":{"project":"default"},"status":{"health":{"status":"Healthy"},"sync":{"status":"Synced","revision":"1"},"reconciledAt":"`+
					w.At(5*time.Hour)+`"}}`)
		}, change: func(w *after.World) {
			w.Put(application, "status.health", map[string]any{"status": "Degraded", "lastTransitionTime": w.At(since)})
		}, answer: answer{named: refs(application)}},
		{name: "DNSRecord", reason: "the name of the routers is not published", before: func(w *after.World) {
			put(w, text(record),
				`{"spec":{"dnsName":"*.apps.example.com.","recordType":"CNAME"},"status":{"observedGeneration":1,"zones":[{"dnsZone":{"id":"Z1"},"conditions":[{"type":"Published","status":"True","reason":"ProviderSuccess"}]}]}}`)
		}, change: func(w *after.World) {
			w.Put(record, "status.zones", []any{map[string]any{
				"dnsZone":    map[string]any{"id": "Z1"},
				"conditions": nested(w, "Published", "False", "ProviderError"),
			}})
		}, answer: answer{named: refs(record)}},
		{name: "VirtualMachine", reason: "it is to run, and is not scheduled", before: func(w *after.World) {
			with(w, text(machine),
				`{"spec":{"runStrategy":"Always","template":{}},"status":{"ready":true,"created":true,"printableStatus":"Running","observedGeneration":1}}`,
				"Ready=True")
		}, change: func(w *after.World) {
			w.Put(machine, "status.ready", false)
			w.Put(machine, "status.printableStatus", "ErrorUnschedulable")
			conditions(w, machine, since, "Ready=False/GuestNotRunning", "PodScheduled=False/Unschedulable")
		}, answer: answer{named: refs(machine)}},
	}
}

// podsWorse are pods that fail in another way, or belong to something else.
func podsWorse() []row {
	set, config, web := in("ReplicaSet shop/alone"), in("DeploymentConfig shop/legacy"), in("Deployment shop/web")
	controller, nightly := in("ReplicationController shop/legacy-1"), in("CronJob shop/nightly")
	return []row{
		{name: "ReplicaSetAlone", reason: "no Deployment has it", before: func(w *after.World) {
			put(w, text(set), `{"spec":{"selector":{"matchLabels":{"app":"alone"}}}}`)
			w.Counts(set, 3, 3)
			pods(w, set, 3, long)
		}, change: func(w *after.World) { down(w, set, 2, "CrashLoopBackOff", since) }, answer: answer{named: refs(set)}},
		{name: "DeploymentConfig", reason: "the pods of its controller crash", before: func(w *after.World) {
			with(w, text(config),
				`{"spec":{"replicas":3,"selector":{"app":"legacy-1"}},"status":{"observedGeneration":1,"latestVersion":1,"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":3,"unavailableReplicas":0}}`,
				"Available=True", "Progressing=True/NewReplicationControllerAvailable")
			put(w, text(controller),
				`{"metadata":{"annotations":{"openshift.io/deployment-config.name":"legacy","openshift.io/deployment.phase":"Complete"},"ownerReferences":[`+w.Owner(config)+`]},"spec":{"selector":{"app":"legacy-1"}}}`)
			w.Counts(controller, 3, 3)
			pods(w, controller, 3, long)
		}, change: func(w *after.World) {
			down(w, controller, 3, "CrashLoopBackOff", since)
			for field, value := range map[string]int{"readyReplicas": 0, "availableReplicas": 0, "unavailableReplicas": 3} {
				w.Put(config, "status."+field, value)
			}
			conditions(w, config, since, "Available=False/MinimumReplicasUnavailable")
		}, answer: answer{either: refs(config, controller, in("ReplicationController shop/legacy"))}},
		{name: "Unschedulable", reason: "what the release reserves leaves no room for a pod of before", change: func(w *after.World) {
			pod := w.Pods(web)[0]
			w.Put(pod, "spec.nodeName", "")
			w.Put(pod, "status", map[string]any{"phase": "Pending"})
			conditions(w, pod, since, "PodScheduled=False/Unschedulable")
			w.Counts(web, 3, 2)
			w.Endpoints("shop", "web", 2)
		}, answer: answer{named: refs(web)}},
		{name: "InitContainer", reason: "its main container never starts", change: func(w *after.World) {
			for _, pod := range w.Pods(web)[:2] {
				w.Put(pod, "status.phase", "Pending")
				w.Put(pod, "status.initContainerStatuses", []any{map[string]any{
					"name": "init", "ready": false, "restartCount": int64(14),
					"image": "init", "imageID": "init", "state": map[string]any{"waiting": map[string]any{"reason": "CrashLoopBackOff"}},
					"lastState": map[string]any{"terminated": map[string]any{"exitCode": int64(1), "finishedAt": w.At(2 * time.Minute)}},
				}})
				w.Container(pod, map[string]any{"waiting": map[string]any{"reason": "PodInitializing"}}, 0, 0)
				conditions(w, pod, since, "Initialized=False/ContainersNotInitialized", "Ready=False/ContainersNotReady",
					"ContainersReady=False/ContainersNotReady")
			}
			w.Counts(web, 3, 1)
			w.Endpoints("shop", "web", 1)
		}, answer: answer{named: refs(web)}},
		{name: "JobsOfCronJob", reason: "each run since the update failed, and none before", before: func(w *after.World) {
			put(w, text(nightly), `{"spec":{"schedule":"*/20 * * * *","suspend":false,"jobTemplate":{"spec":{}}},"status":{"lastScheduleTime":"`+
				w.At(240*time.Minute)+`","lastSuccessfulTime":"`+w.At(239*time.Minute)+`"}}`)
			job(w, nightly, 1, 240*time.Minute, "Complete=True/CompletionsReached")
		}, change: func(w *after.World) {
			w.Put(nightly, "status.lastScheduleTime", w.At(0))
			w.Put(nightly, "status.lastSuccessfulTime", w.At(180*time.Minute))
			for i := range 4 {
				job(w, nightly, 2+i, time.Duration(80-20*i)*time.Minute, "Failed=True/BackoffLimitExceeded")
			}
		}, answer: answer{either: append(refs(nightly), named("shop", "Job", "nightly-2 nightly-3 nightly-4 nightly-5")...)}},
	}
}

// job makes a Job of a CronJob of this age, with a condition.
func job(w *after.World, of after.Ref, number int, age time.Duration, condition string) {
	name := fmt.Sprintf("Job %s/%s-%d", of.Namespace, of.Name, number)
	put(w, name, fmt.Sprintf(
		`{"metadata":{"creationTimestamp":%q,"ownerReferences":[%s]},"spec":{"backoffLimit":0,"completions":1},"status":{"startTime":%[1]q}}`,
		w.At(age), w.Owner(of)))
	conditions(w, in(name), age-time.Minute, condition)
}

// releaseWorse are about what the release has, and proves that it has.
func releaseWorse() []row {
	dns, mirror := in("DaemonSet openshift-dns/dns-default"), in("Pod openshift-kube-apiserver/kube-apiserver-master-1")
	definition, storage := in("CustomResourceDefinition egressqoses.k8s.ovn.org"), in("ClusterOperator storage")
	return []row{
		{
			name: "StaticPod", reason: "the API server of one node crashes, and its pod is owned by the node", before: func(w *after.World) {
				for i := range 3 {
					node := in(fmt.Sprintf("Node master-%d", i))
					pod := put(w, fmt.Sprintf("Pod openshift-kube-apiserver/kube-apiserver-master-%d", i),
						fmt.Sprintf(`{"metadata":{"labels":{"apiserver":"true","app":"openshift-kube-apiserver"},"annotations":{"kubernetes.io/config.mirror":"1","kubernetes.io/config.source":"file"},"ownerReferences":[%s]},"spec":{"nodeName":%q,"priorityClassName":"system-node-critical","containers":[{"name":"main"}]},"status":{"phase":"Running"}}`, w.Owner(node), node.Name))
					w.Container(pod, map[string]any{"running": map[string]any{"startedAt": w.At(long)}}, 0, 0)
					conditions(w, pod, long, "Ready=True", "ContainersReady=True", "PodScheduled=True")
				}
			}, change: func(w *after.World) { fail(w, "CrashLoopBackOff", since, mirror) },
			answer: answer{either: refs(mirror, in("Node master-1"))},
		},
		{name: "JobOfRelease", reason: "a migration of the release failed", change: func(w *after.World) {
			of := made(w, "Job openshift-cluster-storage-operator/migrate", 110*time.Minute,
				`{"spec":{"backoffLimit":6},"status":{"startTime":"`+w.At(110*time.Minute)+`","failed":7}}`)
			w.Released(of)
			conditions(w, of, since, "FailureTarget=True/BackoffLimitExceeded", "Failed=True/BackoffLimitExceeded")
		}, answer: answer{named: refs(in("Job openshift-cluster-storage-operator/migrate"))}},
		{name: "DefinitionGone", reason: "the release has the kind, and all objects of it are lost with it", before: func(w *after.World) {
			w.Released(w.Register("EgressQoS", kinds()["EgressQoS"]))
		}, change: func(w *after.World) { w.Unregister("EgressQoS") }, answer: answer{named: refs(definition)}},
		{
			name: "MadeAgain", reason: "an operator of the release deleted it and made it again, which excuses nothing",
			change: func(w *after.World) {
				content := w.Object(dns).DeepCopy()
				w.Workload("DaemonSet", dns.Namespace, dns.Name, 7)
				w.Put(dns, "metadata.creationTimestamp", w.At(100*time.Minute))
				w.Put(dns, "spec", content.Object["spec"])
				w.Replace(dns, 7, 99*time.Minute)
				down(w, dns, 2, "CrashLoopBackOff", since)
			}, answer: answer{named: refs(dns)},
		},
		{
			name: "DegradedFlaps", reason: "it is degraded for 15 of each 30 minutes", looks: every(5*time.Minute, 70*time.Minute, -30*time.Minute),
			at: func(w *after.World, before time.Duration) {
				status, phase := "True", (int(before.Minutes())+60)%30
				if phase < 15 {
					status = "False"
				}
				conditions(w, storage, before+time.Duration(14-phase%15)*time.Minute, "Degraded="+status+"/Sync")
			}, answer: answer{named: refs(storage)},
		},
		{name: "SetGone", reason: "it is in a namespace that an operator of the release relates to", change: func(w *after.World) {
			gone(w, in("StatefulSet openshift-monitoring/alertmanager-main"))
			w.Endpoints("openshift-monitoring", "alertmanager-main", 0)
		}, answer: answer{named: refs(in("StatefulSet openshift-monitoring/alertmanager-main"))}},
		{name: "AlertOfNodes", reason: "it fires for each worker, and fired for one control plane node", before: func(w *after.World) {
			w.FireFor("NodeClockNotSynchronising", "openshift-monitoring", "node-exporter-0", "warning", 5*time.Hour)
		}, change: func(w *after.World) {
			for i := range 6 {
				w.FireFor("NodeClockNotSynchronising", "openshift-monitoring", fmt.Sprintf("node-exporter-%d", i+1), "warning", since)
			}
		}, answer: answer{named: refs(in("Alert openshift-monitoring/NodeClockNotSynchronising/warning"))}},
	}
}
