package outcome_test

import (
	"fmt"
	"time"

	"github.com/openshift/update-preflight/test/after"
)

// steady is a row of an object that has other conditions after the update, which are no harm.
func steady(name, reason string, of thing, before, now []string) row {
	made := turned(name, reason, of, before, now)
	made.answer = answer{}
	return made
}

// newly is a row of an object that is made after the update, with conditions.
func newly(name, reason, of, content string, now ...string) row {
	return row{name: name, reason: reason, change: func(w *after.World) {
		conditions(w, made(w, of, since, content), since-5*time.Minute,
			now...)
	}}
}

// runsHarmless are runs that ended, well or not: a run is no state of the cluster.
func runsHarmless() []row {
	nightly, web := in("CronJob shop/nightly"), in("Deployment shop/web")
	collects := in("CronJob openshift-monitoring/collect-profiles")
	return []row{
		newly("TaskRun", "the build of a user failed", "TaskRun shop/build-1",
			`{"spec":{"taskRef":{"name":"build"}},"status":{"podName":"build-1-pod"}}`, "Succeeded=False/Failed"),
		newly("PipelineRun", "its owner cancelled it", "PipelineRun shop/deploy-1", `{"spec":{"status":"Cancelled"},"status":{}}`,
			"Succeeded=False/Cancelled"),
		newly("Backup", "one backup of a user has an error", "Backup openshift-adp/daily-1",
			`{"spec":{},"status":{"phase":"PartiallyFailed","errors":1}}`),
		{name: "JobOnce", reason: "one run failed, and the next ones did not", before: func(w *after.World) {
			put(w, text(nightly), `{"spec":{"schedule":"*/20 * * * *","suspend":false,"jobTemplate":{"spec":{}}},"status":{"lastScheduleTime":"`+
				w.At(240*time.Minute)+`","lastSuccessfulTime":"`+w.At(239*time.Minute)+`"}}`)
		}, change: func(w *after.World) {
			job(w, nightly, 2, 80*time.Minute, "Failed=True/BackoffLimitExceeded")
			for i := range 4 {
				job(w, nightly, 3+i, time.Duration(60-20*i)*time.Minute, "Complete=True/CompletionsReached")
			}
			w.Put(nightly, "status.lastScheduleTime", w.At(0))
			w.Put(nightly, "status.lastSuccessfulTime", w.At(0))
		}},
		{name: "JobOnceOfRelease", reason: "one run of a CronJob of the release failed, while nodes were updated", before: func(w *after.World) {
			put(w, text(collects), `{"spec":{"schedule":"*/20 * * * *","suspend":false,"jobTemplate":{"spec":{}}},"status":{"lastScheduleTime":"`+
				w.At(240*time.Minute)+`"}}`)
			job(w, collects, 1, 240*time.Minute, "Complete=True/CompletionsReached")
		}, change: func(w *after.World) {
			job(w, collects, 2, 80*time.Minute, "Failed=True/BackoffLimitExceeded")
			w.Put(collects, "status.lastScheduleTime", w.At(0))
		}},
		{
			name: "VolumeReleased", reason: "its owner deleted the claim of a workload that is gone, and keeps the volume",
			before: func(w *after.World) {
				put(w, "PersistentVolume pv-9",
					`{"spec":{"persistentVolumeReclaimPolicy":"Retain","claimRef":{"kind":"PersistentVolumeClaim","apiVersion":"v1","namespace":"shop","name":"old"}},"status":{"phase":"Bound"}}`)
			}, change: func(w *after.World) { w.Put(in("PersistentVolume pv-9"), "status.phase", "Released") },
		},
		{name: "Suspended", reason: "its owner suspended it", before: func(w *after.World) {
			put(w, text(nightly), `{"spec":{"schedule":"*/20 * * * *","suspend":false,"jobTemplate":{"spec":{}}},"status":{"lastScheduleTime":"`+
				w.At(240*time.Minute)+`"}}`)
		}, change: func(w *after.World) {
			w.Put(nightly, "spec.suspend", true)
			edited(w, nightly, "kubectl-patch", 200*time.Minute)
		}},
		{name: "Evicted", reason: "pods that were evicted are left, and others are ready in their place", change: func(w *after.World) {
			for i := range 4 {
				at := fmt.Sprintf("Pod shop/web-1-evicted%d", i)
				put(w, at, fmt.Sprintf(
					`{"metadata":{"creationTimestamp":%q,"labels":{"app":"web"},"ownerReferences":[%s]},"spec":{"nodeName":"worker-1","containers":[{"name":"main"}]},"status":{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: ephemeral-storage."}}`, w.At(85*time.Minute), w.Owner(in(
						"ReplicaSet shop/web-1"))))
			}
			w.Endpoints(web.Namespace, web.Name, 3)
		}},
		{name: "Completed", reason: "a pod that has completed is not ready", change: func(w *after.World) {
			put(w, "Pod shop/once", `{"metadata":{"creationTimestamp":"`+w.At(80*time.Minute)+
				`"},"spec":{"nodeName":"worker-1","restartPolicy":"Never","containers":[{"name":"main"}]},"status":{"phase":"Succeeded","containerStatuses":[{"name":"main","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]}}`)
			conditions(w, in("Pod shop/once"), since, "Ready=False/PodCompleted", "ContainersReady=False/PodCompleted")
		}},
	}
}

// statesHarmless are words and conditions that state no harm.
func statesHarmless() []row {
	application, storage, certificate := in("Application openshift-gitops/shop"), in("ClusterOperator storage"), in("Certificate shop/tls")
	return []row{
		steady("ScalingLimited", "it has as many pods as its owner permits", thing{
			"HorizontalPodAutoscaler shop/api",
			`{"spec":{"minReplicas":1,"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"api"}},"status":{"currentReplicas":3,"desiredReplicas":3}}`,
		}, all(
			"AbleToScale=True/ReadyForNewScale", "ScalingActive=True/ValidMetricFound", "ScalingLimited=False/DesiredWithinRange"),
			all("ScalingLimited=True/TooManyReplicas")),
		steady("BudgetAtLimit", "it permits no disruption by its spec, as before", thing{
			"PodDisruptionBudget shop/db",
			`{"spec":{"maxUnavailable":0,"selector":{"matchLabels":{"app":"db"}}},"status":{"observedGeneration":1,"disruptionsAllowed":0,"currentHealthy":3,"desiredHealthy":3,"expectedPods":3}}`,
		}, all(
			"DisruptionAllowed=False/InsufficientPods"), all("DisruptionAllowed=False/InsufficientPods")),
		steady("RevisionIdle", "no request came since the update", thing{
			"Revision shop/hello-00001",
			`{"spec":{},"status":{"observedGeneration":1,"desiredReplicas":1,"actualReplicas":1}}`,
		},
			all("Ready=True", "Active=True", "ResourcesAvailable=True", "ContainerHealthy=True"), all("Active=False/NoTraffic")),
		steady("OperatorCondition", "an operator permits no upgrade of itself", thing{
			"OperatorCondition operators/widget.v1.2.3",
			`{"spec":{},"status":{}}`,
		}, all("Upgradeable=True"), all("Upgradeable=False/MigrationRuns")),
		{name: "OutOfSync", reason: "its owner pushed a change that is not synchronized by itself", before: func(w *after.World) {
			put(w, text(application),
				`{"spec":{"project":"default"},"status":{"health":{"status":"Healthy"},"sync":{"status":"Synced","revision":"1"}}}`)
		}, change: func(w *after.World) {
			w.Put(application, "status.sync", map[string]any{"status": "OutOfSync", "revision": "2"})
		}},
		{name: "Renewing", reason: "it is renewed for two minutes, and is valid meanwhile", before: func(w *after.World) {
			with(w, text(certificate), `{"spec":{"secretName":"tls"},"status":{"notAfter":"`+w.At(-20*24*time.Hour)+`","renewalTime":"`+
				w.At(37*time.Minute)+`"}}`, "Ready=True/Ready")
		}, at: func(w *after.World, before time.Duration) {
			if conditions(w, certificate, 36*time.Minute, "Issuing=False/Issued"); before == 35*time.Minute {
				conditions(w, certificate, 36*time.Minute, "Issuing=True/Renewing")
			}
		}},
		{
			name: "ProgressingShortly", reason: "a certificate was rotated, so that the operator rolled out for four minutes",
			at: func(w *after.World, before time.Duration) {
				if before == 50*time.Minute {
					conditions(w, storage, 52*time.Minute, "Progressing=True/Rotation")
				}
				if before == 45*time.Minute {
					conditions(w, storage, 48*time.Minute, "Progressing=False/AsExpected")
				}
			}, looks: []time.Duration{70 * time.Minute, 50 * time.Minute, 45 * time.Minute, 20 * time.Minute, 5 * time.Minute, time.Minute, 0},
		},
		{name: "OtherInstances", reason: "it fires for as many pods as before, of other names", before: func(w *after.World) {
			w.FireFor("RequestErrorsHigh", "shop", "web-1", "warning", 5*time.Hour)
			w.FireFor("RequestErrorsHigh", "shop", "web-2", "warning", 5*time.Hour)
		}, change: func(w *after.World) {
			w.Silence()
			w.FireFor("RequestErrorsHigh", "shop", "web-8", "warning", since)
			w.FireFor("RequestErrorsHigh", "shop", "web-9", "warning", since)
		}, answer: answer{asBefore: refs(in("Alert shop/RequestErrorsHigh/warning"))}},
		steady("Reconciling", "Flux applies it again, which it reports meanwhile", thing{
			"Kustomization flux-system/shop",
			`{"spec":{"interval":"10m"},"status":{"observedGeneration":1,"lastAppliedRevision":"main@sha1:1"}}`,
		},
			all("Ready=True/ReconciliationSucceeded"), all("Ready=True/ReconciliationSucceeded", "Reconciling=False/Progressing")),
		steady("Quota", "a namespace uses all that it may",
			thing{"ResourceQuota shop/pods", `{"spec":{"hard":{"pods":"30"}},"status":{"hard":{"pods":"30"},"used":{"pods":"30"}}}`}, nil, nil),
	}
}

// ownersHarmless are changes of users, and what they deleted.
func ownersHarmless() []row {
	web, image := in("Deployment shop/web"), in("ImageStream shop/base")
	return []row{
		{name: "AppliedAgain", reason: "its owner deleted it and made it again, and it is healthy", change: func(w *after.World) {
			gone(w, web)
			w.Workload("Deployment", "shop", "web", 3)
			w.Put(web, "metadata.creationTimestamp", w.At(since))
			w.Managed(web, "argocd-controller", "Apply", since)
			w.Replace(web, 3, since)
		}},
		{name: "NamespaceDeleted", reason: "its owner deleted all of it", before: func(w *after.World) {
			w.Workload("Deployment", "trial", "web", 2)
			w.Workload("StatefulSet", "trial", "db", 2)
			put(w, "Kafka trial/events", `{"spec":{},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
		}, change: func(w *after.World) {
			uninstall(w, "trial", "web")
			gone(w, in("StatefulSet trial/db"), in("Service trial/db"), in("EndpointSlice trial/db-1"), in("Kafka trial/events"))
		}, answer: answer{listed: refs(in("Namespace trial"))}},
		{name: "BucketDeleted", reason: "a user has one bucket less", before: func(w *after.World) {
			with(w, "Bucket old", `{"spec":{"forProvider":{}},"status":{}}`, "Ready=True/Available", "Synced=True/ReconcileSuccess")
			with(w, "Bucket new", `{"spec":{"forProvider":{}},"status":{}}`, "Ready=True/Available", "Synced=True/ReconcileSuccess")
		}, change: func(w *after.World) { gone(w, in("Bucket old")) }, answer: answer{listed: refs(in("Bucket old"))}},
		{name: "PluginRemoved", reason: "an administrator removed a plugin of the console", before: func(w *after.World) {
			put(w,
				"ConsolePlugin charts", `{"spec":{"displayName":"charts"}}`)
		}, change: func(w *after.World) { gone(w, in("ConsolePlugin charts")) }},
		{name: "SnapshotClass", reason: "a user named a class that does not exist", change: func(w *after.World) {
			made(w, "VolumeSnapshot shop/monday", since,
				`{"spec":{"volumeSnapshotClassName":"none","source":{"persistentVolumeClaimName":"data-db-0"}},"status":{"readyToUse":false,"error":{"message":"failed to get snapshot class none","time":"`+w.At(since)+`"}}}`)
		}, answer: answer{listed: refs(in("VolumeSnapshot shop/monday"))}},
		{name: "ImageOfUser", reason: "its owner named an image that does not exist", before: func(w *after.World) {
			put(w, text(image),
				`{"spec":{"tags":[{"name":"1","from":{"kind":"DockerImage","name":"registry.example.com/base:1"},"generation":1}]},"status":{"tags":[{"tag":"1","items":[{"generation":1,"image":"sha256:1"}]}]}}`)
		}, change: func(w *after.World) {
			edited(w, image, "oc", since)
			w.Put(image, "spec.tags", []any{map[string]any{
				"name": "1", "generation": int64(2),
				"from": map[string]any{"kind": "DockerImage", "name": "registry.example.com/base:2"},
			}})
			w.Put(image, "status.tags", []any{map[string]any{
				"tag": "1", "items": []any{map[string]any{"generation": int64(1), "image": "sha256:1"}},
				"conditions": []any{
					map[string]any{
						"type": "ImportSuccess", "status": "False", "reason": "NotFound", "generation": int64(2),
						"lastTransitionTime": w.At(since),
					},
				},
			}})
		}, answer: answer{listed: refs(image)}},
		{
			name: "NodeJoins", reason: "the autoscaler added a node, which was not ready for five minutes",
			at: func(w *after.World, before time.Duration) {
				node := in("Node worker-9")
				if before == 35*time.Minute {
					w.AddNode(node.Name)
					w.Put(node, "metadata.creationTimestamp", w.At(37*time.Minute))
					w.Put(node, "status.nodeInfo.kubeletVersion", "v1.31.2")
					w.Annotate(node, map[string]string{
						"machineconfiguration.openshift.io/currentConfig": "rendered-2",
						"machineconfiguration.openshift.io/desiredConfig": "rendered-2",
					})
					conditions(w, node, 37*time.Minute, "Ready=False/KubeletNotReady")
				}
				if before == 5*time.Minute {
					conditions(w, node, 32*time.Minute, "Ready=True/KubeletReady")
				}
			},
		},
	}
}

// rolloutsHarmless are rollouts that wait for their owner.
func rolloutsHarmless() []row {
	web, db, canary := in("Deployment shop/web"), in("StatefulSet shop/db"), in("Rollout shop/canary")
	return []row{
		{name: "Partition", reason: "its owner rolls it out to one pod first", change: func(w *after.World) {
			edited(w, db, "kubectl-patch", since)
			w.Put(db, "spec.updateStrategy", map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"partition": int64(2)}})
			w.Put(db, "status.updateRevision", "db-2")
			w.Put(db, "status.updatedReplicas", 1)
			w.Put(db, "status.currentReplicas", 2)
		}},
		{name: "Paused", reason: "its owner paused the rollout", change: func(w *after.World) {
			w.Put(web, "spec.paused", true)
			edited(w, web, "kubectl-rollout", since)
			conditions(w, web, since, "Progressing=Unknown/DeploymentPaused")
		}},
		{
			name: "CanaryPaused", reason: "its owner decides at this step", before: func(w *after.World) { rollout(w, "shop", "canary", 3) },
			change: func(w *after.World) {
				edited(w, canary, "kubectl-argo-rollouts", since)
				w.Put(canary, "status.phase", "Paused")
				w.Put(canary, "status.message", "CanaryPauseStep")
				w.Put(canary, "status.updatedReplicas", 1)
				conditions(w, canary, since, "Paused=True/RolloutPaused", "Progressing=Unknown/RolloutPaused", "Completed=False/RolloutCompleted",
					"Healthy=False/RolloutHealthy")
			}, answer: answer{listed: refs(canary)},
		},
	}
}
