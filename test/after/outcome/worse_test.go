package outcome_test

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/test/after"
)

// atLeastUndecided is right where an object is gone that its user may have deleted.
func atLeastUndecided() []afterupdate.Decision {
	return []afterupdate.Decision{afterupdate.Regressed, afterupdate.Undecided}
}

func autoscaler(w *after.World, name string) {
	with(w, "HorizontalPodAutoscaler shop/"+name,
		`{"spec":{"minReplicas":2,"maxReplicas":9,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"`+name+
			`"},"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}}]},
		"status":{"currentReplicas":3,"desiredReplicas":3,"currentMetrics":[]}}`, "AbleToScale=True/ReadyForNewScale",
		"ScalingActive=True/ValidMetricFound", "ScalingLimited=False/DesiredWithinRange")
}

// kafka makes three brokers, as Strimzi does.
func kafka(w *after.World) {
	cluster := with(w, "Kafka shop/events", `{"spec":{"kafka":{"replicas":3}},"status":{"observedGeneration":1,"clusterId":"Xy1"}}`,
		"Ready=True")
	set := put(w, "StrimziPodSet shop/events-kafka", fmt.Sprintf(
		`{"metadata":{"ownerReferences":[%s]},"spec":{"selector":{"matchLabels":{"app":"events-kafka"}},"pods":[{},{},{}]},"status":{"observedGeneration":1,"pods":3,"currentPods":3,"readyPods":3}}`, w.Owner(cluster)))
	pods(w, set, 3, long)
	service(w, "shop", "events-kafka", 3)
}

// worseWorkloads are about the pods of workloads, and what scales and starts them.
func worseWorkloads() []row {
	canary, web := in("Rollout shop/canary"), in("Deployment shop/web")
	makes := func(w *after.World) { rollout(w, "shop", "canary", 3) }
	return []row{
		{
			name: "01HPA", reason: "the autoscaler has no metrics", before: func(w *after.World) { autoscaler(w, "web") },
			change: func(w *after.World) {
				conditions(w, in("HorizontalPodAutoscaler shop/web"), since, "ScalingActive=False/FailedGetResourceMetric")
			}, answer: answer{named: refs(in("HorizontalPodAutoscaler shop/web"))},
		},
		{name: "02Rollout", reason: "2 of 3 pods crash, and no Deployment has them", before: makes, change: func(w *after.World) {
			fail(w, "CrashLoopBackOff", since, w.Pods(canary)[:2]...)
			ready(w, canary, 1)
			w.Put(canary, "status.phase", "Degraded")
			conditions(w, canary, since, "Available=False/AvailableReason", "Healthy=False/RolloutHealthy")
		}, answer: answer{named: refs(canary)}},
		{name: "03StrimziPodSet", reason: "1 of 3 brokers crashes", before: kafka, change: func(w *after.World) {
			set := in("StrimziPodSet shop/events-kafka")
			fail(w, "CrashLoopBackOff", since, w.Pods(set)[1])
			w.Put(set, "status.readyPods", 2)
			w.Endpoints("shop", "events-kafka", 2)
		}, answer: answer{either: refs(in("StrimziPodSet shop/events-kafka"), in("Kafka shop/events"))}},
		{name: "04CronJob", reason: "it was due six times since the update", before: func(w *after.World) {
			put(w, "CronJob shop/report",
				`{"spec":{"schedule":"*/20 * * * *","suspend":false,"concurrencyPolicy":"Forbid","jobTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"main"}]}}}}},"status":{"lastScheduleTime":"`+w.At(250*time.Minute)+`","lastSuccessfulTime":"`+w.At(249*time.Minute)+`"}}`)
		}, answer: answer{named: refs(in("CronJob shop/report"))}},
		{
			name: "24RolloutNotReady", reason: "its pods run and are not ready, and no container waits", before: makes,
			change: func(w *after.World) {
				for _, pod := range w.Pods(canary)[:2] {
					w.Put(pod, "status.containerStatuses", []any{map[string]any{
						"name": "main", "ready": false, "restartCount": int64(1),
						"state": map[string]any{"running": map[string]any{"startedAt": w.At(88 * time.Minute)}},
					}})
					conditions(w, pod, since, "Ready=False/ContainersNotReady", "ContainersReady=False/ContainersNotReady")
				}
				ready(w, canary, 1)
				w.Put(canary, "status.phase", "Progressing")
				conditions(w, canary, since, "Available=False/AvailableReason", "Healthy=False/RolloutHealthy")
			}, answer: answer{either: refs(canary, in("Service shop/canary"))},
		},
		{name: "28ImageGone", reason: "the pod is of before the update, its container never started again", change: func(w *after.World) {
			w.Replace(web, 3, long)
			fail(w, "ErrImagePull", 86*time.Minute, w.Pods(web)[0])
			w.Counts(web, 3, 2)
			w.Endpoints("shop", "web", 2)
		}, answer: answer{named: refs(web)}},
		{name: "31AlertsKept", reason: "the scaling of another workload explains no alert", change: func(w *after.World) {
			down(w, web, 3, "CrashLoopBackOff", since)
			w.Scale(in("Deployment shop/mail"), 0)
			edited(w, in("Deployment shop/mail"), "kubectl-scale", 90*time.Minute)
			w.Fire("CheckoutDown", "shop", "critical", since)
			w.Fire("ErrorBudgetBurn", "shop", "critical", since)
		}, answer: answer{
			named: refs(web), also: refs(in("Alert shop/CheckoutDown/critical"), in("Alert shop/ErrorBudgetBurn/critical")),
			kept:  refs(in("Alert shop/CheckoutDown/critical"), in("Alert shop/ErrorBudgetBurn/critical")),
			shown: refs(in("Alert shop/CheckoutDown/critical")),
		}},
	}
}

// worseServing are about what serves and stores.
func worseServing() []row {
	edge, public, class := in("Ingress shop/edge"), in("Service shop/public"), in("StorageClass nfs")
	widgets, policy := in("CustomResourceDefinition widgets.example.com"), in("ValidatingWebhookConfiguration policy")
	certificate, ceph, volume := in("Certificate shop/tls"), in("CephCluster rook-ceph/rook-ceph"), in("Volume longhorn-system/pvc-1")
	const address = `{"loadBalancer":{"ingress":[{"ip":"192.0.2.40"}]}}`
	return []row{
		{name: "05Address", reason: "what provides addresses took them back", before: func(w *after.World) {
			put(w, text(edge),
				`{"spec":{"ingressClassName":"nginx","rules":[{"host":"shop.example.com","http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"web","port":{"number":443}}}}]}}]},"status":`+address+`}`)
			put(w, text(public),
				`{"spec":{"type":"LoadBalancer","clusterIP":"172.30.0.10","selector":{"app":"web"},"ports":[{"port":443,"nodePort":30443}]},"status":`+
					address+`}`)
			w.Endpoints("shop", "public", 3)
		}, change: func(w *after.World) {
			w.Put(edge, "status.loadBalancer", map[string]any{})
			w.Put(public, "status.loadBalancer", map[string]any{})
		}, answer: answer{named: refs(edge, public)}},
		{name: "06Claims", reason: "no new volume of the class is provisioned", change: func(w *after.World) {
			for i := range 3 {
				made(w, fmt.Sprintf("PersistentVolumeClaim shop/new-%d", i), since,
					`{"spec":{"storageClassName":"nfs","accessModes":["ReadWriteOnce"]},"status":{"phase":"Pending"}}`)
			}
		}, answer: answer{either: refs(class, in("CSIDriver nfs.example.com"))}},
		{name: "11Conversion", reason: "no stored object of the kind can be read", before: func(w *after.World) {
			put(w, "Widget operators/one", `{"spec":{}}`)
			w.Put(widgets, "spec.conversion", map[string]any{
				"strategy": "Webhook",
				"webhook": map[string]any{"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{
					"caBundle": "Y2E=",
					"service":  map[string]any{"namespace": "operators", "name": "widget-operator", "path": "/convert"},
				}},
			})
		}, change: func(w *after.World) {
			gone(w, in("Service operators/widget-operator"), in("EndpointSlice operators/widget-operator-1"))
		}, answer: answer{named: refs(widgets), also: refs(in("Service operators/widget-operator"))}},
		{
			name: "12CABundle", reason: "the API server trusts no webhook without it", before: func(w *after.World) { bundle(w, policy, "Y2E=") },
			change: func(w *after.World) {
				bundle(w, policy, "")
				edited(w, policy, "service-ca-operator", since)
			}, answer: answer{named: refs(policy)},
		},
		{name: "19Certificate", reason: "it is not issued again", before: func(w *after.World) {
			with(w, text(certificate), `{"spec":{"secretName":"tls","issuerRef":{"name":"acme"}},"status":{"notAfter":"`+w.At(-20*24*time.Hour)+
				`","renewalTime":"`+w.At(2*time.Hour)+`"}}`, "Ready=True/Ready")
		}, change: func(w *after.World) {
			conditions(w, certificate, since, "Ready=False/IncorrectIssuer", "Issuing=False/Failed")
		}, answer: answer{named: refs(certificate)}},
		{name: "23Storage", reason: "the storage of users has lost copies", before: func(w *after.World) {
			with(w, text(ceph), `{"spec":{},"status":{"phase":"Ready","state":"Created","ceph":{"health":"HEALTH_OK"}}}`,
				"Ready=True/ClusterCreated")
			with(w, text(volume), `{"spec":{"numberOfReplicas":3},"status":{"state":"attached","robustness":"healthy"}}`, "Scheduled=True")
		}, change: func(w *after.World) {
			w.Put(ceph, "status.ceph", map[string]any{
				"health": "HEALTH_ERR", "previousHealth": "HEALTH_OK", "lastChanged": w.At(since),
				"details": map[string]any{"PG_DAMAGED": map[string]any{"severity": "HEALTH_ERR", "message": "1 pg inconsistent"}},
			})
			w.Put(volume, "status.state", "detached")
			w.Put(volume, "status.robustness", "faulted")
		}, answer: answer{named: refs(ceph, volume)}},
		{
			name: "35EgressIP", reason: "no node has the address",
			change: func(w *after.World) { w.Put(in("EgressIP shop"), "status.items", []any{}) }, answer: answer{named: refs(in("EgressIP shop"))},
		},
		{
			name: "29NewAPIService", reason: "the release brought it, and no user can have broken it", looks: lately(),
			change: func(w *after.World) {
				api := made(w, "APIService v1beta2.metrics.k8s.io", 110*time.Minute,
					`{"spec":{"group":"metrics.k8s.io","version":"v1beta2","groupPriorityMinimum":100,"versionPriority":100,"service":{"namespace":"openshift-monitoring","name":"metrics-server"}}}`)
				w.Managed(api, "cluster-monitoring-operator", "Update", 110*time.Minute)
				conditions(w, api, 50*time.Minute, "Available=False/FailedDiscoveryCheck")
				service(w, "openshift-monitoring", "metrics-server", 0)
			}, answer: answer{either: refs(in("APIService v1beta2.metrics.k8s.io"), in("Service openshift-monitoring/metrics-server"))},
		},
		{name: "30NewWebhook", reason: "the release brought it, and its Service does not exist", change: func(w *after.World) {
			w.Released(made(w, "ValidatingWebhookConfiguration machine-api", 110*time.Minute,
				`{"webhooks":[{"name":"machines.machine.openshift.io","admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"Fail","clientConfig":{"caBundle":"Y2E=","service":{"namespace":"openshift-machine-api","name":"machine-api-operator-webhook"}},"rules":[{"apiGroups":["machine.openshift.io"],"apiVersions":["v1beta1"],"operations":["CREATE","UPDATE"],"resources":["machines"]}]}]}`))
		}, answer: answer{named: refs(in("ValidatingWebhookConfiguration machine-api"))}},
	}
}

// bundle sets the caBundle of the webhooks of a configuration.
func bundle(w *after.World, of after.Ref, text string) {
	webhooks, _, err := unstructured.NestedSlice(w.Object(of).Object, "webhooks")
	for _, each := range webhooks {
		if webhook, ok := each.(map[string]any); ok && err == nil {
			err = unstructured.SetNestedField(webhook, text, "clientConfig", "caBundle")
		}
	}
	if err != nil {
		panic(err)
	}
	w.Put(of, "webhooks", webhooks)
}

// worseGone are about what does not exist any more.
func worseGone() []row {
	return []row{
		{name: "07ClaimGone", reason: "the data of a database may be lost", before: func(w *after.World) {
			put(w, "PersistentVolumeClaim shop/ledger",
				`{"spec":{"storageClassName":"nfs","volumeName":"pv-ledger","accessModes":["ReadWriteOnce"]},"status":{"phase":"Bound"}}`)
		}, change: func(w *after.World) { gone(w, in("PersistentVolumeClaim shop/ledger")) }, answer: answer{
			decided: atLeastUndecided(),
			shown:   refs(in("PersistentVolumeClaim shop/ledger")), also: refs(in("PersistentVolumeClaim shop/ledger")),
		}},
		{name: "08DeploymentsGone", reason: "what deleted all of them left their Services", before: func(w *after.World) {
			for _, name := range []string{"accounts", "ledger", "rates", "teller"} {
				w.Workload("Deployment", "bank", name, 2)
			}
		}, change: func(w *after.World) {
			for _, each := range w.Refs("Deployment", "bank", "") {
				gone(w, each)
				w.Endpoints("bank", each.Name, 0)
			}
		}, answer: answer{
			decided: atLeastUndecided(), says: []string{"bank", "4"},
			also: append(refs(in("Namespace bank")), named("bank", "Deployment Service", "accounts ledger rates teller")...),
		}},
		{name: "09DaemonSetGone", reason: "the release has it, and its Service stays", change: func(w *after.World) {
			gone(w, in("DaemonSet openshift-dns/dns-default"))
			w.Endpoints("openshift-dns", "dns-default", 0)
		}, answer: answer{named: refs(in("DaemonSet openshift-dns/dns-default"))}},
		{name: "10OperatorGone", reason: "each release has monitoring", change: func(w *after.World) {
			gone(w,
				in("ClusterOperator monitoring"))
		}, answer: answer{named: refs(in("ClusterOperator monitoring"))}},
		{name: "16NodeGone", reason: "a Machine of the control plane has no node", before: func(w *after.World) {
			for i := range 3 {
				name := fmt.Sprintf("master-%d", i)
				put(w, "Machine openshift-machine-api/"+name,
					`{"spec":{"providerID":"aws:///a/`+name+`"},"status":{"phase":"Running","nodeRef":{"kind":"Node","name":"`+name+`"}}}`)
				w.Annotate(in("Node "+name), map[string]string{"machine.openshift.io/machine": "openshift-machine-api/" + name})
			}
		}, change: func(w *after.World) {
			gone(w, in("Node master-2"), in("CSINode master-2"))
			w.Scale(in("DaemonSet openshift-dns/dns-default"), 6)
			w.Scale(in("DaemonSet openshift-cluster-csi-drivers/aws-ebs-csi-driver-node"), 6)
			shrink(w, "master", 2)
		}, answer: answer{named: refs(in("Node master-2"))}},
		{
			name: "32PoolGone", reason: "no worker gets a configuration", change: func(w *after.World) { gone(w, in("MachineConfigPool worker")) },
			answer: answer{named: refs(in("MachineConfigPool worker"))},
		},
		{
			name: "33ClassGone", reason: "claims without a class have no default",
			change: func(w *after.World) { gone(w, in("StorageClass gp3-csi")) }, answer: answer{named: refs(in("StorageClass gp3-csi"))},
		},
	}
}

// named are the objects of these kinds and names in a namespace.
func named(namespace, kinds, names string) []after.Ref {
	var all []after.Ref
	for kind := range strings.FieldsSeq(kinds) {
		for name := range strings.FieldsSeq(names) {
			all = append(all, ref(kind, namespace, name))
		}
	}
	return all
}
