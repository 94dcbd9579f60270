package rehearsal_test

import "maps"

// row is a state of the cluster and the manifests of a target. In its documents NS is a namespace of the row, and ID a text of its own
// for names of the cluster; HOOK is the URL of a webhook server and BUNDLE its certificate.
type row struct {
	// reason is why the answer is right.
	reason string
	// before are objects that exist, in two steps: those of then are applied when the pods of the first exist.
	before, then string
	// target are the manifests of the target.
	target string
	// want are the findings but for the counts, as NAME OUTCOME REASON, and says a part of their messages.
	want []string
	says string
	// stuck is whether the update is stuck when the manifests are really applied. unsure is for a row of which the rehearsal says that it
	// does not know.
	stuck, unsure bool
}

const (
	namespace = `
{apiVersion: v1, kind: Namespace, metadata: {name: NS}}
`
	app = namespace + `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app, namespace: NS}
spec:
  selector: {matchLabels: {app: one}}
  template:
    metadata: {labels: {app: one}}
    spec: {containers: [{name: a, image: "example.com/a:1"}]}
`
	appNext = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: app, namespace: NS}
spec:
  selector: {matchLabels: {app: one}}
  template:
    metadata: {labels: {app: one}}
    spec: {containers: [{name: a, image: "example.com/a:2"}]}
`
	settings     = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: NS}, data: {a: "1"}}`
	settingsNext = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: NS}, data: {a: "2"}}`

	// refuses is a webhook that refuses what has the namespace of the row.
	hook = `
apiVersion: admissionregistration.k8s.io/v1
kind: KINDWebhookConfiguration
metadata: {name: hook-ID}
webhooks:
- name: hook-ID.example.com
  clientConfig: {url: "HOOK/PATH", caBundle: BUNDLE}
  rules: [{operations: [CREATE, UPDATE, DELETE], apiGroups: ["*"], apiVersions: ["*"], resources: ["RESOURCES"]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
  sideEffects: EFFECTS
  admissionReviewVersions: [v1]
  timeoutSeconds: 1
`
	policy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: policy-ID}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
    resourceRules: [{operations: [CREATE, UPDATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
  validations: [{expression: "object.data.a == '1'", message: "only one"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: policy-ID}
spec: {policyName: policy-ID, validationActions: [Deny]}
`
	things = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: thingsID.foresee.example.com}
spec:
  group: foresee.example.com
  scope: Namespaced
  names: {plural: thingsID, kind: ThingID}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {mode: {type: string, enum: [MODES]}}}
`
	thing = `{apiVersion: foresee.example.com/v1, kind: ThingID, metadata: {name: it, namespace: NS}, spec: {mode: MODE}}`
)

// rows are states in which a rehearsal could be wrong: those of which an update is known to get stuck, and others that look alike.
func rows() map[string]row {
	all := map[string]row{}
	for _, some := range []map[string]row{validated(), admitted(), ofPods(), ofTarget()} {
		maps.Copy(all, some)
	}
	return all
}

// validated are rows about the validation of the API server.
func validated() map[string]row {
	return map[string]row{
		"Healthy": {
			reason: "a change that everything admits", before: app + "---\n" + settings, target: appNext + "---\n" + settingsNext,
		},
		"Selector": {
			reason: "the selector of a Deployment cannot be changed", before: app, stuck: true,
			target: replaced(appNext, "app: one", "app: two"),
			want:   []string{"Rehearsal.Deployment.NS.app Fail WriteRefused"}, says: "field is immutable",
		},
		"ServiceAddress": {
			reason: "CVO leaves the address of a Service alone", before: namespace + `---
{apiVersion: v1, kind: Service, metadata: {name: s, namespace: NS}, spec: {ports: [{port: 80}], selector: {a: b}}}`,
			target: `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: NS}, spec: {clusterIP: None, ports: [{port: 81}], selector: {a: c}}}`,
		},
		"NewServiceAddress": {
			reason: "an address that no Service may have", before: namespace, stuck: true,
			target: `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: NS}, spec: {clusterIP: 192.0.2.1, ports: [{port: 80}]}}`,
			want:   []string{"Rehearsal.Service.NS.s Fail WriteRefused"}, says: "is not in the valid range",
		},
		"Claims": {
			reason: "the claims of a StatefulSet cannot be changed", stuck: true,
			before: namespace + "---\n" + replaced(statefulSet, "SIZE", "1Gi"), target: replaced(statefulSet, "SIZE", "2Gi"),
			want: []string{"Rehearsal.StatefulSet.NS.set Fail WriteRefused"}, says: "field is immutable",
		},
		"Job": {
			reason: "the template of a Job cannot be changed", stuck: true,
			before: namespace + "---\n" + replaced(job, "TAG", "1"), target: replaced(job, "TAG", "2"),
			want: []string{"Rehearsal.Job.NS.job Fail WriteRefused"}, says: "field is immutable",
		},
		"RoleRef": {
			reason: "the role of a binding cannot be changed", stuck: true, before: namespace + "---\n" + replaced(binding, "ROLE", "view"),
			target: replaced(binding, "ROLE", "edit"),
			want:   []string{"Rehearsal.RoleBinding.NS.b Fail WriteRefused"}, says: "field is immutable",
		},
		"ForeignManager": {
			reason: "CVO updates, so that a foreign field manager is no conflict", before: app,
			then: replaced(appNext, "example.com/a:2", "example.com/other:1"), target: appNext,
		},
		"Owner": {
			reason: "an owner that does not exist is not validated",
			before: namespace,
			target: `{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, namespace: NS, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: gone, uid: 5d1c2f04-0000-0000-0000-000000000000}]}}`,
		},
		"OtherController": {
			reason: "an object has one controller, and CVO makes ClusterVersion that", stuck: true,
			before: namespace + "---\n" + replaced(controlled, "VALUE", "1"),
			target: `{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, namespace: NS}, data: {a: "2"}}`,
			want:   []string{"Rehearsal.ConfigMap.NS.owned Fail WriteRefused"}, says: "Only one reference can have Controller set to true",
		},
		"CreateOnly": {
			reason: "CVO does not update what it only creates", before: app,
			target: replaced(appNext, "{name: app, namespace: NS}",
				`{name: app, namespace: NS, annotations: {release.openshift.io/create-only: "true"}}`, "app: one", "app: two"),
		},
		"Deleting": {
			reason: "CVO waits until a Deployment is gone that is being deleted", stuck: true,
			before: replaced(app, "{name: app, namespace: NS}", "{name: app, namespace: NS, finalizers: [example.com/stays]}"),
			then:   "delete Deployment NS/app", target: appNext,
			want: []string{"Rehearsal.Deployment.NS.app Fail WriteRefused"}, says: "the object is being deleted",
		},
		"DeletingSettings": {
			reason: "CVO writes other objects that are being deleted, and creates them again", then: "delete ConfigMap NS/settings",
			target: settingsNext,
			before: namespace + "---\n" + replaced(settings, "namespace: NS", "namespace: NS, finalizers: [example.com/stays]"),
		},
		"TerminatingNamespace": {
			reason: "nothing is created in a namespace that is being deleted", stuck: true, then: "delete Namespace NS",
			target: replaced(settings, "settings", "others"),
			before: namespace + "---\n" + replaced(settings, "namespace: NS", "namespace: NS, finalizers: [example.com/stays]"),
			want:   []string{"Rehearsal.ConfigMap.NS.others Fail WriteRefused"}, says: "it is being terminated",
		},
		"Unchanged": {
			reason: "CVO does not write what has all of its manifest, whatever refuses another write",
			before: namespace + "---\n" + settings, then: hookOf("Validating", "refuse", "configmaps", "None"), target: settings,
		},
		"Gone": {
			reason: "what is to be deleted and does not exist is no write", before: namespace,
			target: replaced(settings, "namespace: NS", `namespace: NS, annotations: {release.openshift.io/delete: "true"}`),
		},
	}
}

const (
	controlled = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: owned
  namespace: NS
  finalizers: [example.com/stays]
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: other, uid: 5d1c2f04-0000-0000-0000-000000000000, controller: true}]
data: {a: "VALUE"}
`
	statefulSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: set, namespace: NS}
spec:
  serviceName: set
  replicas: 0
  selector: {matchLabels: {app: set}}
  template:
    metadata: {labels: {app: set}}
    spec: {containers: [{name: a, image: "example.com/a:1"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: SIZE}}}
`
	job = `
apiVersion: batch/v1
kind: Job
metadata: {name: job, namespace: NS}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: a, image: "example.com/a:TAG"}]}
`
	binding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ROLE}
subjects: [{kind: ServiceAccount, name: default, namespace: NS}]
`
	quota = `{apiVersion: v1, kind: ResourceQuota, metadata: {name: few, namespace: NS}, spec: {hard: {RESOURCE: "1"}}}`
)

// admitted are rows about webhooks, policies and quotas that decide on the writes themselves.
func admitted() map[string]row {
	refusedSettings := []string{"Rehearsal.ConfigMap.NS.settings Fail WriteRefused"}
	before := namespace + "---\n" + settings
	return map[string]row{
		"Refuses": {
			reason: "a webhook that refuses", before: before, then: hookOf("Validating", "refuse", "configmaps", "None"), target: settingsNext,
			want: refusedSettings, says: `webhook "hook-ID.example.com" rejects it`, stuck: true,
		},
		"RefusesDeletion": {
			reason: "a webhook that refuses a deletion", before: before, then: hookOf("Validating", "refuse", "configmaps", "None"), stuck: true,
			target: replaced(settings, "namespace: NS", `namespace: NS, annotations: {release.openshift.io/delete: "true"}`), want: refusedSettings,
			says: "delete ConfigMap",
		},
		"TimesOut": {
			reason: "a webhook that does not answer, with failurePolicy Fail", before: before,
			then: hookOf("Validating", "hang", "configmaps", "None"), target: settingsNext,
			want: refusedSettings, says: `webhook "hook-ID.example.com" rejects it`, stuck: true,
		},
		"TimesOutIgnored": {
			reason: "a webhook that does not answer, with failurePolicy Ignore", before: before,
			then:   replaced(hookOf("Validating", "hang", "configmaps", "None"), "sideEffects", "failurePolicy: Ignore\n  sideEffects"),
			target: settingsNext,
		},
		"SideEffects": {
			reason: "a webhook that has no side effects for a dry run", before: before,
			then: hookOf("Validating", "admit", "configmaps", "NoneOnDryRun"), target: settingsNext,
		},
		"Policy": {
			reason: "a policy that denies", before: before, then: policy, target: settingsNext, want: refusedSettings, says: "only one", stuck: true,
		},
		"PolicyOfTheUpdate": {
			reason: "a policy that the update replaces denies by its rule of today", before: before, then: policy,
			target: replaced(policy, "object.data.a == '1'", "object.data.a == '2'") + "---\n" + settingsNext, unsure: true,
			want: []string{"Rehearsal.ConfigMap.NS.settings Unknown WriteNotAsked"}, says: "the update changes ValidatingAdmissionPolicy policy-ID",
		},
		"Spoofed": {
			reason: "a webhook whose message is like that of a quota", before: before, then: hookOf("Validating", "spoof", "configmaps", "None"),
			target: settingsNext,
			want:   refusedSettings, says: `webhook "hook-ID.example.com" rejects it`, stuck: true,
		},
		"ObjectQuota": {
			reason: "a quota of objects", before: before, then: replaced(quota, "RESOURCE", "count/configmaps"), stuck: true,
			target: settings + "\n---\n" + replaced(settings, "settings", "others"),
			want:   []string{"Rehearsal.ConfigMap.NS.others Fail WriteRefused"}, says: `quota "few" rejects it`,
		},
	}
}

// ofPods are rows about the pods that controllers make.
func ofPods() map[string]row {
	refusedPod := []string{"Rehearsal.Pod.NS.app Fail WriteRefused"}
	return map[string]row{
		"PodQuota": {
			reason: "a quota that the next pod exceeds", before: app, then: replaced(quota, "RESOURCE", "pods"), target: appNext, want: refusedPod,
			says: `quota "few" rejects it`, stuck: true,
		},
		"PodSecurity": {
			reason: "a label of the namespace that a person set", before: app,
			then: replaced(namespace, "name: NS", "name: NS, labels: {pod-security.kubernetes.io/enforce: restricted}"), target: appNext,
			want: refusedPod, says: "Pod Security rejects it", stuck: true,
		},
		"PodSecurityOfTheUpdate": {
			reason: "the update sets the label of the namespace back", before: app,
			then:   replaced(namespace, "name: NS", "name: NS, labels: {pod-security.kubernetes.io/enforce: restricted}"),
			target: replaced(namespace, "name: NS", "name: NS, labels: {pod-security.kubernetes.io/enforce: privileged}") + "---\n" + appNext,
			want:   []string{"Rehearsal.Pod.NS.app Unknown WriteNotAsked"}, says: "the update changes Namespace NS", unsure: true,
		},
		"PodRefused": {
			reason: "a webhook that refuses pods", before: app, then: hookOf("Validating", "refuse", "pods", "None"), target: appNext,
			want: refusedPod,
			says: `webhook "hook-ID.example.com" rejects it`, stuck: true,
		},
		"NewClassBeforeWebhook": {
			reason: "a PriorityClass that is missing today is noticed before any webhook is asked", before: app,
			then: hookOf("Validating", "refuse", "pods", "None"),
			target: "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: class-ID}, value: 1}\n---\n" +
				replaced(appNext, "spec: {containers", "spec: {priorityClassName: class-ID, containers"),
			want: []string{"Rehearsal.Pod.NS.app Unknown WriteNotAsked"}, says: "the pod needs PriorityClass class-ID", unsure: true,
		},
		"PodChanged": {
			reason: "a webhook that gives the next pods another container", before: app, then: hookOf("Mutating", "sidecar", "pods", "None"),
			target: appNext,
			want:   []string{"Rehearsal.Pod.NS.app Warn PodAltered"}, says: "injected",
		},
		"LimitRatio": {
			reason: "a LimitRange whose ratio the next pod exceeds", stuck: true, before: app, want: refusedPod, says: "max limit to request ratio",
			then: `{apiVersion: v1, kind: LimitRange, metadata: {name: r, namespace: NS}, spec: {limits: [{type: Container, maxLimitRequestRatio: {cpu: "2"}}]}}`,
			target: replaced(appNext, `image: "example.com/a:2"`,
				`image: "example.com/a:2", resources: {requests: {cpu: 100m}, limits: {cpu: "1"}}`),
		},
		"RuntimeClass": {
			reason: "a RuntimeClass that does not exist, of a new Deployment", before: namespace,
			target: replaced(appNext, "spec: {containers", "spec: {runtimeClassName: gone-ID, containers"), want: refusedPod,
			says: "gone-ID", stuck: true,
		},
		"RuntimeClassIgnored": {
			reason: "CVO does not give a Deployment that exists another RuntimeClass", before: app,
			target: replaced(appNext, "spec: {containers", "spec: {runtimeClassName: gone-ID, containers"),
		},
		"RuntimeClassOfTheUpdate": {
			reason: "a RuntimeClass that the update brings", before: namespace, unsure: true, says: "the pod needs RuntimeClass new-ID",
			target: "{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: new-ID}, handler: runc}\n---\n" + replaced(appNext,
				"spec: {containers", "spec: {runtimeClassName: new-ID, containers"),
			want: []string{"Rehearsal.Pod.NS.app Unknown WriteNotAsked"},
		},
		"Account": {
			reason: "a ServiceAccount that does not exist", before: app,
			target: replaced(appNext, "spec: {containers", "spec: {serviceAccountName: gone, containers"), want: refusedPod,
			says: "gone", stuck: true,
		},
	}
}

// ofTarget are rows about what the target brings or changes itself.
func ofTarget() map[string]row {
	return map[string]row{
		"NewKind": {
			reason: "objects of a new kind cannot be asked", before: namespace, unsure: true,
			target: replaced(things, "MODES", "a") + "---\n" + replaced(thing, "MODE", "a"),
			want:   []string{"RehearsalNotAsked Skipped BroughtByTarget"}, says: "1 object of kinds or in namespaces",
		},
		"NewNamespace": {
			reason: "objects in a new namespace cannot be asked", unsure: true, target: namespace + "---\n" + settings,
			want: []string{"RehearsalNotAsked Skipped BroughtByTarget"}, says: "ConfigMap",
		},
		"NewVersionOfKind": {
			reason: "a value that only the schema of the target has is refused by that of today", unsure: true,
			before: namespace + "---\n" + replaced(things, "MODES", "a"), then: replaced(thing, "MODE", "a"),
			target: replaced(things, "MODES", "a, b") + "---\n" + replaced(thing, "MODE", "b"),
			want:   []string{"Rehearsal.ThingID.NS.it Unknown WriteNotAsked"}, says: "the update changes CustomResourceDefinition",
		},
		"StoredObjects": {
			reason: "a definition is accepted whose stored objects violate it: another check has that",
			before: namespace + "---\n" + replaced(things, "MODES", "a, b"),
			then:   replaced(thing, "MODE", "b"), target: replaced(things, "MODES", "a"),
		},
		"UnknownKind": {
			reason: "a kind that neither the cluster nor the target has", before: namespace, unsure: true,
			target: "{apiVersion: foresee.example.com/v1, kind: NowhereID, metadata: {name: it, namespace: NS}}",
			want:   []string{"Rehearsal.NowhereID.NS.it Unknown WriteNotAsked"},
			says:   "neither the API server nor a definition of the release has kind",
		},
	}
}
