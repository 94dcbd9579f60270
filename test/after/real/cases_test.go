package real_test

import "testing"

// change is what happens to objects after the update.
type change struct {
	name, reason string
	// before are the objects that it is about, as YAML.
	before string
	apply  func(t *testing.T, w *world)
	// shows are the problems that Kubernetes then states, as "Deployment shop/web Unavailable". worse reports whether
	// they are regressions; excused are none in any case.
	shows, excused []string
}

// innocents are changes by owners, and what an update does without harm.
func innocents() []change {
	return []change{
		{
			name: "Tainted", reason: "an administrator took a node out of service, and its pods are on others",
			apply: func(t *testing.T, w *world) {
				t.Helper()
				w.patch(t, "nodes", "", tainted, `{"spec":{"taints":[{"key":"example.com/repair","effect":"NoExecute"}]}}`)
				w.evacuated(t, tainted)
			},
		},
		{
			name: "Idle", reason: "its owner scaled it to none, with a webhook that it serves",
			before: template{kind: "Deployment", namespace: "idle", name: "web", replicas: 2}.yaml() + webhooks("idle", "idle", "web"),
			apply: func(t *testing.T, w *world) {
				t.Helper()
				w.patch(t, "deployments", "idle", "web", `{"spec":{"replicas":0}}`)
			},
			shows: []string{"Service idle/web NoEndpoints", "ValidatingWebhookConfiguration idle NoEndpoints"},
		},
		{
			name: "Grown", reason: "its owner scaled it to more pods than the nodes have room for",
			before: template{kind: "Deployment", namespace: grown, name: "web", replicas: 2}.yaml(),
			apply: func(t *testing.T, w *world) {
				t.Helper()
				w.patch(t, "deployments", grown, "web", `{"spec":{"replicas":9}}`)
			},
			shows: []string{"Deployment grown/web Unavailable", "Deployment grown/web Unschedulable"},
		},
		{
			name: "Limited", reason: "its owner scaled it to more pods than the quota permits",
			before: template{kind: "Deployment", namespace: "limited", name: "web", replicas: 2}.yaml() + quota("limited", 2),
			apply: func(t *testing.T, w *world) {
				t.Helper()
				w.patch(t, "deployments", "limited", "web", `{"spec":{"replicas":4}}`)
			},
			shows: []string{"Deployment limited/web FailedCreate", "Deployment limited/web RolloutIncomplete", "Deployment limited/web Unavailable"},
		},
		{
			name: "Surge", reason: "its owner rolls it out, and the quota has no room for another pod",
			before: template{kind: "Deployment", namespace: "surge", name: "web", replicas: 2}.yaml() + quota("surge", 2),
			apply: func(t *testing.T, w *world) {
				t.Helper()
				w.patch(t, "deployments", "surge", "web", `{"spec":{"template":{"metadata":{"annotations":{"example.com/rollout":"2"}}}}}`)
			},
			shows: []string{"Deployment surge/web FailedCreate", "Deployment surge/web RolloutIncomplete"},
		},
		{
			name: "Rollout", reason: "its owner rolled it out",
			before: template{kind: "Deployment", namespace: "rolled", name: "web", replicas: 2}.yaml() + template{
				kind:      "StatefulSet",
				namespace: "rolled", name: "db", replicas: 2,
			}.yaml(),
			apply: func(t *testing.T, w *world) {
				t.Helper()
				for _, each := range [][2]string{{"deployments", "web"}, {"statefulsets", "db"}} {
					old := w.pods(t, "rolled", each[1])
					w.patch(t, each[0], "rolled", each[1], `{"spec":{"template":{"metadata":{"annotations":{"example.com/rollout":"2"}}}}}`)
					w.replaced(t, "rolled", each[1], old)
				}
			},
		},
		{
			name: "Evicted", reason: "each pod was evicted, and made again",
			before: template{kind: "Deployment", namespace: "evicted", name: "web", replicas: 2}.yaml() + template{
				kind:      "StatefulSet",
				namespace: "evicted", name: "db", replicas: 2,
			}.yaml() +
				template{kind: "DaemonSet", namespace: "evicted", name: "agent"}.yaml(),
			apply: func(t *testing.T, w *world) {
				t.Helper()
				for _, name := range []string{"web", "db", "agent"} {
					old := w.deletePods(t, "evicted", name)
					w.replaced(t, "evicted", name, old)
				}
			},
		},
		{
			name: "Broken", reason: "its owner rolled out an image that does not start",
			before: template{kind: "Deployment", namespace: "broken", name: "web", replicas: 2, spec: "strategy: {type: Recreate}"}.yaml(),
			apply: func(t *testing.T, w *world) {
				t.Helper()
				w.patch(t, "deployments", "broken", "web", `{"spec":{"template":{"metadata":{"annotations":{"simulation-ready":"never"}}}}}`)
			},
			shows: []string{"Deployment broken/web Unavailable", "Service broken/web NoReadyEndpoints"},
		},
		{
			name: "Deleted", reason: "its owner deleted it, and not its Service",
			before: template{kind: "Deployment", namespace: "deleted", name: "web", replicas: 2}.yaml(),
			apply:  func(t *testing.T, w *world) { t.Helper(); w.remove(t, "deployments", "deleted", "web") },
			shows:  []string{"Service deleted/web NoEndpoints"},
		},
		{
			name: "Selected", reason: "its owner has a Service select other pods, which do not exist yet",
			before: template{kind: "Deployment", namespace: "selected", name: "web", replicas: 2}.yaml(),
			apply: func(t *testing.T, w *world) {
				t.Helper()
				w.patch(t, "services", "selected", "web", `{"spec":{"selector":{"app":"green"}}}`)
			},
			shows: []string{"Service selected/web NoEndpoints"},
		},
		{
			name: "Created", reason: "it was created since, and has never been good",
			apply: func(t *testing.T, w *world) {
				t.Helper()
				w.create(t, template{
					kind: "Deployment", namespace: "created", name: "web", replicas: 1,
					annotations: "simulation-ready: never",
				}.yaml()+claim("created", "data"))
			},
			shows: []string{
				"Deployment created/web Unavailable", "PersistentVolumeClaim created/data NotBound",
				"Service created/web NoReadyEndpoints",
			},
		},
	}
}

// regressions are what breaks by causes that the cluster itself states.
func regressions() []change {
	return []change{
		{
			name: "Quota", reason: "a quota forbids its pods since they were evicted",
			before: template{kind: "Deployment", namespace: "quota", name: "web", replicas: 2}.yaml(),
			apply: func(t *testing.T, w *world) {
				t.Helper()
				w.create(t, quota("quota", 0))
				w.enforced(t, "quota")
				w.deletePods(t, "quota", "web")
			},
			shows: []string{
				"Deployment quota/web FailedCreate", "Deployment quota/web RolloutIncomplete", "Deployment quota/web Unavailable",
				"Service quota/web NoEndpoints",
			},
		},
		{
			name: "Security", reason: "pod security admission forbids the pods since they were evicted",
			before: template{kind: "Deployment", namespace: "security", name: "web", replicas: 2}.yaml() + template{
				kind:      "StatefulSet",
				namespace: "security", name: "db", replicas: 2,
			}.yaml() +
				template{kind: "DaemonSet", namespace: "security", name: "agent"}.yaml(),
			apply: func(t *testing.T, w *world) {
				t.Helper()
				w.patch(t, "namespaces", "", "security", `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
				for _, name := range []string{"web", "db", "agent"} {
					w.deletePods(t, "security", name)
				}
			},
			shows: []string{
				"DaemonSet security/agent RolloutIncomplete", "DaemonSet security/agent Unavailable",
				"Deployment security/web FailedCreate", "Deployment security/web RolloutIncomplete", "Deployment security/web Unavailable",
				"Service security/agent NoEndpoints", "Service security/db NoEndpoints", "Service security/web NoEndpoints",
				"StatefulSet security/db RolloutIncomplete", "StatefulSet security/db Unavailable",
			},
		},
		{
			name: "Cordoned", reason: "the only node of its pod is cordoned, and its webhook has no back end",
			before: template{
				kind: "Deployment", namespace: "policy", name: "webhook", replicas: 1,
				pod: "nodeSelector: {kubernetes.io/hostname: " + cordoned + "}",
			}.yaml() + webhooks("policy", "policy", "webhook"),
			apply: func(t *testing.T, w *world) {
				t.Helper()
				w.patch(t, "nodes", "", cordoned, `{"spec":{"unschedulable":true}}`)
				w.deletePods(t, "policy", "webhook")
			},
			shows: []string{
				"Deployment policy/webhook Unavailable", "Deployment policy/webhook Unschedulable",
				"Service policy/webhook NoReadyEndpoints", "ValidatingWebhookConfiguration policy NoReadyEndpoints",
			},
		},
		{
			name: "Aggregated", reason: "the server of an API does not respond",
			apply: func(t *testing.T, w *world) {
				t.Helper()
				w.api.CloseClientConnections()
				w.api.Close()
				w.patch(t, "apiservices", "", "v1.real.example.com", `{"metadata":{"annotations":{"example.com/checked":"again"}}}`)
			},
			shows: []string{"APIService v1.real.example.com Unavailable"},
		},
		{
			name: "Claims", reason: "a claim lost its volume, and another that its owner made again waits for one",
			before: volume("storage", "pending") + volume("storage", "lost"),
			apply: func(t *testing.T, w *world) {
				t.Helper()
				w.remove(t, "persistentvolumeclaims", "storage", "pending")
				w.create(t, claim("storage", "pending"))
				w.remove(t, "persistentvolumes", "", "lost")
			},
			shows: []string{"PersistentVolumeClaim storage/lost Lost"}, excused: []string{"PersistentVolumeClaim storage/pending NotBound"},
		},
	}
}
