package merge_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/runner/rehearsal/merge"
)

// TestUnchanged: nothing is written for an object that has what its manifest states, the defaults of the API server, and
// what others add where CVO leaves it.
func TestUnchanged(t *testing.T) {
	for _, kind := range slices.Sorted(maps.Keys(pairs())) {
		t.Run(kind, func(t *testing.T) {
			required, existing := object(t, kind), object(t, kind, stored(kind))
			merged, changed := merge.Of(required, existing)
			if changed {
				t.Errorf("changed (-existing +merged):\n%s", cmp.Diff(existing.Object, merged.Object))
			}
			if diff := cmp.Diff(existing.Object, merged.Object); !changed && diff != "" {
				t.Errorf("unchanged, but merged (-existing +merged):\n%s", diff)
			}
		})
	}
}

// row is a manifest, an object, and what CVO writes.
type row struct {
	name, reason string
	// kind has the pair that both are made of.
	kind string
	// manifest and existing are edits in YAML: maps are merged, lists item by item, and null removes.
	manifest, existing string
	changed            bool
	// want has values of the merged object in YAML, by their paths; an empty one is absent.
	want map[string]string
}

// TestOf holds the rules of lib/resourcemerge of CVO against manifests and objects.
func TestOf(t *testing.T) {
	rows := slices.Concat(metadataRows(), workloadRows(), podRows(), containerRows(), batchRows(), coreRows(), openshiftRows(),
		roleRows(), extensionRows(), genericRows())
	for _, row := range rows {
		t.Run(row.kind+"/"+row.name, func(t *testing.T) {
			required, existing := object(t, row.kind, row.manifest), object(t, row.kind, stored(row.kind), row.existing)
			before := [2]*unstructured.Unstructured{required.DeepCopy(), existing.DeepCopy()}
			merged, changed := merge.Of(required, existing)
			if changed != row.changed {
				diff := cmp.Diff(existing.Object, merged.Object)
				t.Errorf("changed is %v, want %v: %s\n(-existing +merged)\n%s", changed, row.changed, row.reason, diff)
			}
			if !changed && !cmp.Equal(existing.Object, merged.Object) {
				t.Errorf("unchanged, but merged (-existing +merged):\n%s", cmp.Diff(existing.Object, merged.Object))
			}
			if diff := cmp.Diff(before, [2]*unstructured.Unstructured{required, existing}); diff != "" {
				t.Errorf("Of changed its arguments (-before +after):\n%s", diff)
			}
			for path, want := range row.want {
				if diff := cmp.Diff(value(t, want), at(merged.Object, path)); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", path, row.reason, diff)
				}
			}
			if again, changed := merge.Of(required, merged); changed && isTyped(required) {
				t.Errorf("the merged object is changed again (-merged +again):\n%s", cmp.Diff(merged.Object, again.Object))
			}
		})
	}
}

func metadataRows() []row {
	return []row{
		{
			name: "a label and an annotation of others", reason: "their keys are left", kind: "Deployment",
			existing: "metadata: {labels: {team: a}, annotations: {note: b}}",
			want:     map[string]string{"metadata.labels.team": "a", "metadata.annotations.note": "b"},
		},
		{
			name: "another value of a label", reason: "the manifest wins", kind: "Deployment",
			existing: "metadata: {labels: {app: other, team: a}}", changed: true,
			want: map[string]string{"metadata.labels": "{app: api, team: a, theirs: x}", "metadata.uid": "u-1", "status.replicas": "2"},
		},
		{
			name: "a new annotation that is empty", reason: "an absent key is not an empty value", kind: "ServiceAccount",
			manifest: "metadata: {annotations: {empty: ''}}", changed: true,
			want: map[string]string{"metadata.annotations.empty": "''"},
		},
		{
			name: "an owner by its UID", reason: "an owner of the manifest is replaced, others are left", kind: "ServiceAccount",
			manifest: "metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: b, controller: true}]}",
			existing: "metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: o, uid: a}, {apiVersion: v1, kind: Pod, name: p, uid: b}]}",
			changed:  true,
			want: map[string]string{"metadata.ownerReferences": `[{apiVersion: v1, kind: Pod, name: o, uid: a},
				{apiVersion: v1, kind: Pod, name: p, uid: b, controller: true}]`},
		},
		{
			name: "only created", reason: "the annotation create-only counts in any case", kind: "ConfigMap",
			manifest: "{metadata: {annotations: {release.openshift.io/create-only: 'True'}}, data: {new: x}}",
			want:     map[string]string{"data.new": ""},
		},
		{
			name: "not only created", reason: "any other value of the annotation has no effect", kind: "ConfigMap",
			manifest: "{metadata: {annotations: {release.openshift.io/create-only: 'no'}}, data: {new: x}}", changed: true,
			want: map[string]string{"data.new": "x"},
		},
	}
}

func workloadRows() []row {
	return []row{
		{
			name: "scaled", reason: "the replicas of the manifest count", kind: "Deployment",
			existing: "spec: {replicas: 5}", changed: true, want: map[string]string{"spec.replicas": "2"},
		},
		{
			name: "scaled without replicas in the manifest", reason: "one is the default", kind: "Deployment",
			manifest: "spec: {replicas: null}", changed: true, want: map[string]string{"spec.replicas": "1"},
		},
		{
			name: "no replicas", reason: "zero is stated", kind: "Deployment",
			manifest: "spec: {replicas: 0}", changed: true, want: map[string]string{"spec.replicas": "0"},
		},
		{
			name: "paused", reason: "an absent value is false", kind: "Deployment",
			existing: "spec: {paused: true}", changed: true, want: map[string]string{"spec.paused": ""},
		},
		{
			name: "another selector", reason: "CVO sends what the API server refuses", kind: "Deployment",
			existing: "spec: {selector: {matchLabels: {app: old}}}", changed: true,
			want: map[string]string{"spec.selector": "{matchLabels: {app: api}}"},
		},
		{
			name: "a key less in the selector", reason: "the selector is compared as a whole", kind: "Deployment",
			existing: "spec: {selector: {matchLabels: {tier: back}}}", changed: true,
			want: map[string]string{"spec.selector": "{matchLabels: {app: api}}"},
		},
		{
			name: "Recreate", reason: "the defaults of a rolling update do not apply", kind: "Deployment",
			manifest: "spec: {strategy: {type: Recreate}}", existing: "spec: {strategy: {type: Recreate, rollingUpdate: null}}",
		},
		{
			name: "a surge of others", reason: "the strategy is compared with its defaults", kind: "Deployment",
			existing: "spec: {strategy: {rollingUpdate: {maxSurge: 3}}}", changed: true,
			want: map[string]string{"spec.strategy.rollingUpdate": "{maxSurge: 25%, maxUnavailable: 25%}"},
		},
		{
			name: "history and deadline of others", reason: "CVO leaves what the manifest does not state", kind: "Deployment",
			existing: "spec: {revisionHistoryLimit: 3, progressDeadlineSeconds: 60}",
		},
		{
			name: "a stated history", reason: "the manifest counts", kind: "Deployment",
			manifest: "spec: {revisionHistoryLimit: 2}", changed: true, want: map[string]string{"spec.revisionHistoryLimit": "2"},
		},
		{
			name: "another update strategy", reason: "CVO does not update it", kind: "DaemonSet",
			manifest: "spec: {updateStrategy: {type: OnDelete}}",
		},
		{
			name: "another image", reason: "the template is merged", kind: "DaemonSet",
			manifest: "spec: {template: {spec: {containers: [{image: new}]}}}", changed: true,
			want: map[string]string{"spec.template.spec.containers.0.image": "new", "spec.updateStrategy.type": "RollingUpdate"},
		},
	}
}

func podRows() []row {
	return []row{
		{
			name: "a container less", reason: "a container that the manifest lacks is removed", kind: "Deployment",
			manifest: "spec: {template: {spec: {containers: [{}, null]}}}", changed: true,
			want: map[string]string{"spec.template.spec.containers.0.name": "api", "spec.template.spec.containers.1": ""},
		},
		{
			name: "a container of others", reason: "it is removed", kind: "Deployment",
			existing: "spec: {template: {spec: {containers: [{}, {}, {name: mesh, image: m}]}}}", changed: true,
			want: map[string]string{"spec.template.spec.containers.1.name": "proxy", "spec.template.spec.containers.2": ""},
		},
		{
			name: "a new container", reason: "it is appended as the manifest states it", kind: "Deployment",
			manifest: "spec: {template: {spec: {containers: [{}, {}, {name: new, image: n, ports: [{containerPort: 80}]}]}}}", changed: true,
			want: map[string]string{
				"spec.template.spec.containers.2":                 "{name: new, image: n, ports: [{containerPort: 80}]}",
				"spec.template.spec.containers.0.imagePullPolicy": "IfNotPresent",
			},
		},
		{
			name: "no init container any more", reason: "an empty list is absent", kind: "Deployment",
			manifest: "spec: {template: {spec: {initContainers: null}}}", changed: true,
			want: map[string]string{"spec.template.spec.initContainers": ""},
		},
		{
			name: "a volume of another kind", reason: "a volume is found by its name and replaced", kind: "Deployment",
			existing: "spec: {template: {spec: {volumes: [{secret: null, configMap: {name: c, defaultMode: 420}}]}}}", changed: true,
			want: map[string]string{"spec.template.spec.volumes.0": "{name: tls, secret: {secretName: tls, defaultMode: 420}}"},
		},
		{
			name: "volumes in another order", reason: "a volume is found by its name", kind: "Deployment",
			manifest: "spec: {template: {spec: {volumes: [{name: tmp, secret: null, emptyDir: {}}, {name: tls, secret: {secretName: tls}}]}}}",
		},
		{
			name: "a volume of others", reason: "it is removed", kind: "Deployment",
			existing: "spec: {template: {spec: {volumes: [{}, {}, {name: x, emptyDir: {}}]}}}", changed: true,
			want: map[string]string{"spec.template.spec.volumes.1.name": "tmp", "spec.template.spec.volumes.2": ""},
		},
		{
			name: "a toleration of others", reason: "tolerations are only added", kind: "Deployment",
			existing: "spec: {template: {spec: {tolerations: [{}, {key: infra, operator: Exists}]}}}",
		},
		{
			name: "a new toleration", reason: "it is appended", kind: "Deployment",
			manifest: "spec: {template: {spec: {tolerations: [{key: new, operator: Exists}]}}}", changed: true,
			want: map[string]string{"spec.template.spec.tolerations": "[{operator: Exists}, {key: new, operator: Exists}]"},
		},
		{
			name: "a toleration twice", reason: "CVO removes a repetition of its own", kind: "Deployment",
			existing: "spec: {template: {spec: {tolerations: [{}, {operator: Exists}, {key: a}, {key: a}]}}}", changed: true,
			want: map[string]string{"spec.template.spec.tolerations": "[{operator: Exists}, {key: a}, {key: a}]"},
		},
		{
			name: "a node selector of others", reason: "the keys of the manifest are merged", kind: "Deployment",
			manifest: "spec: {template: {spec: {nodeSelector: {os: linux}}}}", existing: "spec: {template: {spec: {nodeSelector: {zone: a}}}}",
			changed: true, want: map[string]string{"spec.template.spec.nodeSelector": "{os: linux, zone: a}"},
		},
		{
			name: "affinity of others", reason: "CVO leaves it without one in the manifest", kind: "Deployment",
			existing: "spec: {template: {spec: {affinity: {nodeAffinity: {}}}}}",
		},
		{
			name: "another affinity", reason: "each kind of affinity is replaced", kind: "Deployment",
			manifest: "spec: {template: {spec: {affinity: {podAffinity: {}}}}}",
			existing: "spec: {template: {spec: {affinity: {nodeAffinity: {}}}}}",
			changed:  true, want: map[string]string{"spec.template.spec.affinity": "{podAffinity: {}}"},
		},
		{
			name: "DNS and termination of others", reason: "the defaults are restored", kind: "Deployment",
			existing: "spec: {template: {spec: {dnsPolicy: Default, terminationGracePeriodSeconds: 5}}}", changed: true,
			want: map[string]string{"spec.template.spec.dnsPolicy": "ClusterFirst", "spec.template.spec.terminationGracePeriodSeconds": "30"},
		},
		{
			name: "no grace period", reason: "zero is stated", kind: "Deployment",
			manifest: "spec: {template: {spec: {terminationGracePeriodSeconds: 0}}}", changed: true,
			want: map[string]string{"spec.template.spec.terminationGracePeriodSeconds": "0"},
		},
		{
			name: "priority class and restart policy of others", reason: "CVO leaves them without one in the manifest", kind: "Deployment",
			existing: "spec: {template: {spec: {priorityClassName: high, schedulerName: mine, hostPID: true}}}",
		},
		{
			name: "automountServiceAccountToken of others", reason: "false is not absent", kind: "Deployment",
			existing: "spec: {template: {spec: {automountServiceAccountToken: false}}}", changed: true,
			want: map[string]string{"spec.template.spec.automountServiceAccountToken": ""},
		},
		{
			name: "the security context of a pod", reason: "groups and sysctls are only added", kind: "Deployment",
			manifest: "spec: {template: {spec: {securityContext: {runAsNonRoot: true, supplementalGroups: [2], sysctls: [{name: a, value: '1'}]}}}}",
			existing: "spec: {template: {spec: {securityContext: {fsGroup: 1, supplementalGroups: [1], " +
				"sysctls: [{name: a, value: '0'}, {name: b, value: '0'}]}}}}",
			changed: true,
			want: map[string]string{"spec.template.spec.securityContext": `{runAsNonRoot: true, supplementalGroups: [1, 2],
				sysctls: [{name: a, value: '1'}, {name: b, value: '0'}]}`},
		},
		{
			name: "host ports of the host network", reason: "a host port is the container port", kind: "Deployment",
			manifest: "spec: {template: {spec: {hostNetwork: true}}}",
			existing: "spec: {template: {spec: {hostNetwork: true, containers: [{ports: [{hostPort: 8443}]}]}}}",
		},
	}
}

func containerRows() []row {
	const container = "spec.template.spec.containers.0."
	edit := func(fields string) string { return "spec: {template: {spec: {containers: [" + fields + "]}}}" }
	return []row{
		{
			name: "a variable of others", reason: "the environment is replaced", kind: "Deployment",
			existing: edit("{env: [{}, {}, {name: DEBUG, value: 'yes'}]}"), changed: true,
			want: map[string]string{container + "env": `[{name: MODE, value: a},
				{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name, apiVersion: v1}}}]`},
		},
		{
			name: "an empty value", reason: "an empty value is an absent one", kind: "Deployment",
			manifest: edit("{env: [{value: ''}]}"), existing: edit("{env: [{value: null}]}"),
		},
		{
			name: "arguments of others", reason: "arguments are replaced", kind: "Deployment",
			existing: edit("{args: [--debug]}"), changed: true, want: map[string]string{container + "args": ""},
		},
		{
			name: "equal quantities", reason: "1000m is 1", kind: "Deployment",
			manifest: edit("{resources: {requests: {cpu: 1000m, memory: 1024Mi}}}"),
			existing: edit("{resources: {requests: {cpu: '1', memory: 1Gi}}}"),
		},
		{
			name: "another quantity", reason: "requests are replaced", kind: "Deployment",
			existing: edit("{resources: {requests: {cpu: '2'}, limits: {cpu: '2'}}}"), changed: true,
			want: map[string]string{container + "resources": "{requests: {cpu: 10m}}"},
		},
		{
			name: "a quantity as a number", reason: "1 is '1'", kind: "Deployment",
			manifest: edit("{resources: {requests: {cpu: 1}}}"), existing: edit("{resources: {requests: {cpu: '1'}}}"),
		},
		{
			name: "a port of others", reason: "it is removed", kind: "Deployment",
			existing: edit("{ports: [{}, {name: debug, containerPort: 1, protocol: TCP}]}"), changed: true,
			want: map[string]string{container + "ports": "[{name: https, containerPort: 8443, protocol: TCP}]"},
		},
		{
			name: "ports without names", reason: "CVO finds ports by their names, and so makes both the first one", kind: "Deployment",
			manifest: edit("{ports: [{name: null}, {containerPort: 9090}]}"),
			existing: edit("{ports: [{name: null}, {containerPort: 9090, protocol: TCP}]}"), changed: true,
			want: map[string]string{container + "ports": "[{containerPort: 8443, protocol: TCP}, {containerPort: 8443, protocol: TCP}]"},
		},
		{
			name: "a mount of others", reason: "it is removed", kind: "Deployment",
			existing: edit("{volumeMounts: [{}, {name: tmp, mountPath: /x}]}"), changed: true,
			want: map[string]string{container + "volumeMounts": "[{name: tls, mountPath: /tls, readOnly: true}]"},
		},
		{
			name: "a slow probe", reason: "the defaults are restored", kind: "Deployment",
			existing: edit("{livenessProbe: {periodSeconds: 60}}"), changed: true,
			want: map[string]string{container + "livenessProbe.periodSeconds": "10"},
		},
		{
			name: "a probe of another kind", reason: "the handler is replaced", kind: "Deployment",
			manifest: edit("{livenessProbe: {httpGet: null, tcpSocket: {port: 1}}}"), changed: true,
			want: map[string]string{container + "livenessProbe.httpGet": "", container + "livenessProbe.tcpSocket": "{port: 1}"},
		},
		{
			name: "a probe of others", reason: "it is removed, but a startup probe is left", kind: "Deployment",
			existing: edit("{readinessProbe: {tcpSocket: {port: 1}}, startupProbe: {tcpSocket: {port: 1}}}"), changed: true,
			want: map[string]string{container + "readinessProbe": "", container + "startupProbe": "{tcpSocket: {port: 1}}"},
		},
		{
			name: "a new probe", reason: "it is added as the manifest states it", kind: "Deployment",
			manifest: edit("{readinessProbe: {tcpSocket: {port: 1}}}"), changed: true,
			want: map[string]string{container + "readinessProbe": "{tcpSocket: {port: 1}}"},
		},
		{
			name: "capabilities of others", reason: "capabilities are only added", kind: "Deployment",
			manifest: edit("{securityContext: {capabilities: {drop: [ALL]}}}"),
			existing: edit("{securityContext: {capabilities: {add: [CHOWN], drop: [KILL]}}}"), changed: true,
			want: map[string]string{container + "securityContext.capabilities": "{add: [CHOWN], drop: [KILL, ALL]}"},
		},
		{
			name: "privileged by others", reason: "the security context is restored, but for the group", kind: "Deployment",
			existing: edit("{securityContext: {privileged: true, runAsGroup: 1, seLinuxOptions: {level: s0}}}"), changed: true,
			want: map[string]string{container + "securityContext": "{allowPrivilegeEscalation: false, runAsGroup: 1}"},
		},
		{
			name: "an image pull policy of the manifest", reason: "CVO does not update it", kind: "Deployment",
			manifest: edit("{imagePullPolicy: Always, startupProbe: {tcpSocket: {port: 1}}}"),
		},
	}
}

func batchRows() []row {
	return []row{
		{
			name: "another schedule", reason: "the schedule is replaced", kind: "CronJob",
			existing: "spec: {schedule: '0 0 * * *', suspend: true, timeZone: Etc/UTC}", changed: true,
			want: map[string]string{"spec.schedule": "'@daily'", "spec.suspend": "false", "spec.timeZone": ""},
		},
		{
			name: "another image", reason: "the template of the job is merged", kind: "CronJob",
			manifest: "spec: {jobTemplate: {spec: {template: {spec: {containers: [{image: new}]}}}}}", changed: true,
			want: map[string]string{
				"spec.jobTemplate.spec.template.spec.containers.0.image": "new",
				"spec.jobTemplate.spec.template.spec.restartPolicy":      "Never",
			},
		},
		{
			name: "defaults that CVO does not know", reason: "CVO writes the job in every cycle, without a change", kind: "Job",
			existing: "spec: {parallelism: 1, completions: 1}", changed: true,
			want: map[string]string{
				"spec.parallelism":                  "",
				"spec.completions":                  "",
				"spec.template.metadata.labels.job": "u-1",
				"spec.selector.matchLabels.job":     "u-1",
			},
		},
		{
			name: "another limit", reason: "the manifest counts", kind: "Job",
			manifest: "spec: {backoffLimit: 0}", changed: true, want: map[string]string{"spec.backoffLimit": "0"},
		},
	}
}

func coreRows() []row {
	return []row{
		{
			name: "a key of an administrator", reason: "keys are merged", kind: "ConfigMap",
			existing: "{data: {mine: x, config: other}, binaryData: {more: aGk=}}", changed: true,
			want: map[string]string{"data": "{config: a, mine: x}", "binaryData": "{blob: aGk=, more: aGk=}"},
		},
		{
			name: "a label of an administrator", reason: "labels are merged", kind: "Namespace",
			manifest: "metadata: {labels: {new: x}}", existing: "metadata: {labels: {mine: z}}", changed: true,
			want: map[string]string{"metadata.labels": "{app: api, mine: z, new: x, theirs: x}", "spec.finalizers": "[kubernetes]"},
		},
		{
			name: "another type", reason: "ClusterIP is the default, and the addresses are left", kind: "Service",
			existing: "spec: {type: LoadBalancer}", changed: true,
			want: map[string]string{"spec.type": "ClusterIP", "spec.clusterIP": "10.0.0.1", "spec.sessionAffinity": "None"},
		},
		{
			name: "another selector", reason: "the selector is replaced", kind: "Service",
			existing: "spec: {selector: {tier: back}}", changed: true, want: map[string]string{"spec.selector": "{app: api}"},
		},
		{
			name: "a port of others", reason: "it is removed", kind: "Service",
			existing: "spec: {ports: [{}, {name: debug, port: 1, targetPort: 1, protocol: TCP}]}", changed: true,
			want: map[string]string{"spec.ports": "[{name: https, port: 443, targetPort: 443, protocol: TCP}]"},
		},
		{
			name: "the port of a node", reason: "CVO replaces the port in every cycle; the API server keeps the port of the node", kind: "Service",
			manifest: "spec: {type: NodePort}", existing: "spec: {type: NodePort, ports: [{nodePort: 30000}]}", changed: true,
			want: map[string]string{"spec.ports": "[{name: https, port: 443, targetPort: 443, protocol: TCP}]"},
		},
		{
			name: "fields that CVO does not update", reason: "only ports, type and selector count", kind: "Service",
			manifest: "spec: {sessionAffinity: ClientIP, publishNotReadyAddresses: true}",
		},
		{
			name: "secrets of the cluster", reason: "they are left", kind: "ServiceAccount",
			manifest: "automountServiceAccountToken: false", changed: true,
			want: map[string]string{"automountServiceAccountToken": "false", "secrets": "[{name: s}]"},
		},
	}
}

func openshiftRows() []row {
	return []row{
		{
			name: "a tag of others", reason: "tags are only added", kind: "ImageStream",
			manifest: "spec: {tags: [{}, {name: new, from: {kind: DockerImage, name: n}}]}",
			existing: "spec: {tags: [{}, {name: mine, from: {kind: DockerImage, name: m}, importPolicy: {importMode: Legacy}}]}", changed: true,
			want: map[string]string{
				"spec.tags.1.name":       "mine",
				"spec.tags.2":            "{name: new, from: {kind: DockerImage, name: n}}",
				"spec.tags.0.generation": "2",
			},
		},
		{
			name: "another source of a tag", reason: "only its source and import policy are replaced", kind: "ImageStream",
			existing: "spec: {tags: [{from: {name: other}, importPolicy: {scheduled: true}}]}", changed: true,
			want: map[string]string{"spec.tags.0": `{name: latest, from: {kind: DockerImage, name: image}, importPolicy: {importMode: Legacy},
				referencePolicy: {type: Source}, generation: 2}`},
		},
		{
			name: "another strategy", reason: "Default is the default", kind: "OperatorGroup",
			existing: "spec: {upgradeStrategy: TechPreviewUnsafeFailForward, targetNamespaces: [a]}", changed: true,
			want: map[string]string{"spec": "{upgradeStrategy: Default, targetNamespaces: [test]}"},
		},
		{
			name: "users of others", reason: "each list is replaced", kind: "SecurityContextConstraints",
			existing: "{users: [a], priority: 10, allowPrivilegeEscalation: false, runAsUser: {uid: 1}}", changed: true,
			want: map[string]string{"users": "[]", "priority": "", "allowPrivilegeEscalation": "true", "runAsUser": "{type: MustRunAsRange}"},
		},
		{
			name: "a volume of others", reason: "the list is replaced", kind: "SecurityContextConstraints",
			existing: "volumes: [configMap, secret, hostPath]", changed: true, want: map[string]string{"volumes": "[configMap, secret]"},
		},
		{
			name: "metadata only", reason: "what an operator reports is not CVO's", kind: "ClusterOperator",
			manifest: "metadata: {annotations: {new: x}}", changed: true,
			want: map[string]string{"metadata.annotations.new": "x", "status.versions": "[{name: operator, version: 4.19.0}]"},
		},
	}
}

func roleRows() []row {
	return []row{
		{
			name: "rules of others", reason: "rules are replaced", kind: "ClusterRole",
			existing: "rules: [{verbs: [get, list]}]", changed: true,
			want: map[string]string{"rules": "[{apiGroups: [''], resources: [pods], verbs: [get]}]"},
		},
		{
			name: "aggregated", reason: "the control plane writes the rules", kind: "ClusterRole",
			manifest: "{rules: null, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}",
			existing: "{rules: [{verbs: [list]}], aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}",
		},
		{
			name: "another aggregation", reason: "only the aggregation is replaced", kind: "ClusterRole",
			manifest: "{aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}", changed: true,
			want: map[string]string{
				"rules":           "[{apiGroups: [''], resources: [pods], verbs: [get]}]",
				"aggregationRule": "{clusterRoleSelectors: [{matchLabels: {a: b}}]}",
			},
		},
		{
			name: "not aggregated any more", reason: "both are replaced", kind: "ClusterRole",
			existing: "{rules: [{verbs: [list]}], aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}", changed: true,
			want: map[string]string{"rules.0.verbs": "[get]", "aggregationRule": ""},
		},
		{
			name: "names of a rule", reason: "a field that only the object has is a difference", kind: "Role",
			existing: "rules: [{resourceNames: [a]}]", changed: true,
			want: map[string]string{"rules": "[{apiGroups: [''], resources: [pods], verbs: [get], resourceNames: []}]"},
		},
		{
			name: "another role", reason: "CVO sends what the API server refuses", kind: "ClusterRoleBinding",
			existing: "roleRef: {name: other}", changed: true,
			want: map[string]string{"roleRef": "{kind: ClusterRole, name: reader, apiGroup: rbac.authorization.k8s.io}"},
		},
		{
			name: "a subject of others", reason: "subjects are replaced", kind: "RoleBinding",
			existing: "subjects: [{}, {kind: User, name: u, apiGroup: rbac.authorization.k8s.io}]", changed: true,
			want: map[string]string{"subjects": "[{kind: ServiceAccount, name: api, namespace: test, apiGroup: ''}]"},
		},
	}
}

func extensionRows() []row {
	const injected = "metadata: {annotations: {service.beta.openshift.io/inject-cabundle: 'true'}}"
	const conversion = "conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], " +
		"clientConfig: {service: {name: s, namespace: ns}}}}"
	const bundled = "conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {caBundle: aGk=, " +
		"service: {name: s, namespace: ns, port: 443}}}}"
	return []row{
		{
			name: "a property less", reason: "the schema is compared as a whole", kind: "CustomResourceDefinition",
			existing: "spec: {versions: [{schema: {openAPIV3Schema: {properties: {old: {type: string}}}}}]}", changed: true,
			want: map[string]string{
				"spec.versions.0.schema.openAPIV3Schema.properties": "{size: {type: integer, minimum: 0}}",
				"spec.names.listKind":                               "ThingList", "spec.conversion.strategy": "None", "status.storedVersions": "[v1]",
			},
		},
		{
			name: "a subresource", reason: "an empty one is not an absent one", kind: "CustomResourceDefinition",
			existing: "spec: {versions: [{subresources: null}]}", changed: true,
			want: map[string]string{"spec.versions.0.subresources": "{status: {}}"},
		},
		{
			name: "an injected bundle", reason: "the service CA operator owns it", kind: "CustomResourceDefinition",
			manifest: "{spec: {" + conversion + "}, " + injected + "}", existing: "{spec: {" + bundled + "}, " + injected + "}",
		},
		{
			name: "an injected bundle and a change", reason: "the bundle is kept in what is written", kind: "CustomResourceDefinition",
			manifest: "{spec: {scope: Cluster, " + conversion + "}, " + injected + "}",
			existing: "{spec: {" + bundled + "}, " + injected + "}", changed: true,
			want: map[string]string{"spec.conversion.webhook.clientConfig.caBundle": "aGk=", "spec.scope": "Cluster"},
		},
		{
			name: "a bundle that is not injected", reason: "the manifest counts", kind: "CustomResourceDefinition",
			manifest: "{spec: {" + conversion + "}}", existing: "{spec: {" + bundled + "}}", changed: true,
			want: map[string]string{"spec.conversion.webhook.clientConfig.caBundle": ""},
		},
		{
			name: "an injected bundle", reason: "all webhooks have the first one", kind: "ValidatingWebhookConfiguration",
			manifest: "{webhooks: [{}, {name: second, clientConfig: {url: u}}], " + injected + "}",
			existing: "{webhooks: [{clientConfig: {caBundle: aGk=}}], " + injected + "}", changed: true,
			want: map[string]string{"webhooks.0.clientConfig.caBundle": "aGk=", "webhooks.1.clientConfig.caBundle": "aGk="},
		},
		{
			name: "another failure policy", reason: "Fail is the default", kind: "ValidatingWebhookConfiguration",
			existing: "webhooks: [{failurePolicy: Ignore}]", changed: true, want: map[string]string{"webhooks.0.failurePolicy": "Fail"},
		},
		{
			name: "a port that CVO does not know", reason: "CVO writes the webhooks in every cycle, " +
				"without a change", kind: "ValidatingWebhookConfiguration",
			manifest: "webhooks: [{clientConfig: {service: {port: null}}}]", changed: true,
		},
	}
}

func genericRows() []row {
	return []row{
		{
			name: "a default of the API server", reason: "all fields are compared exactly", kind: "ConsolePlugin",
			existing: "spec: {i18n: {loadType: ''}}", changed: true, want: map[string]string{"spec": "{displayName: Plugin}"},
		},
		{
			name: "an annotation of others", reason: "metadata are not compared", kind: "ConsolePlugin",
			existing: "metadata: {annotations: {note: a}, labels: {b: c}}", want: map[string]string{"metadata.annotations.note": "a"},
		},
		{
			name: "a difference, with metadata of others", reason: "labels and annotations are those of the manifest then", kind: "ConsolePlugin",
			manifest: "{metadata: {labels: {a: b}}, spec: {displayName: New}}",
			existing: `metadata: {annotations: {note: a}, labels: {b: c}, finalizers: [f], ownerReferences: [
				{apiVersion: v1, kind: Pod, name: p, uid: a},
				{apiVersion: config.openshift.io/v1, kind: ClusterVersion, name: version, uid: b, controller: true}]}`,
			changed: true,
			want: map[string]string{
				"metadata.annotations": "", "metadata.labels": "{a: b}", "metadata.finalizers": "[f]", "metadata.uid": "u-1",
				"metadata.ownerReferences": "[{apiVersion: config.openshift.io/v1, kind: ClusterVersion, name: version, uid: b, controller: true}]",
				"spec.displayName":         "New", "status.phase": "Ready",
			},
		},
		{
			name: "owners of the manifest", reason: "they replace the others", kind: "ConsolePlugin",
			manifest: "{spec: {displayName: New}, metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: a}]}}",
			existing: "metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: q, uid: b}]}", changed: true,
			want: map[string]string{"metadata.ownerReferences": "[{apiVersion: v1, kind: Pod, name: p, uid: a}]"},
		},
		{
			name: "a field that only the object has", reason: "it is a difference, and it is kept", kind: "ConsolePlugin",
			existing: "extra: a", changed: true, want: map[string]string{"extra": "a"},
		},
		{
			name: "a status in the manifest", reason: "that of the object counts", kind: "ConsolePlugin", manifest: "status: {phase: New}",
		},
		{
			name: "another version of a kind with rules", reason: "the rules are of one version", kind: "Deployment",
			manifest: "apiVersion: apps/v1beta1", existing: "apiVersion: apps/v1beta1", changed: true,
			want: map[string]string{"spec.template.spec.dnsPolicy": "", "spec.replicas": "2", "metadata.uid": "u-1"},
		},
	}
}

// TestHostile: no value of another shape in a manifest or an object causes a panic, and what is written for such a manifest
// is not written again, but for items without a key.
func TestHostile(t *testing.T) {
	t.Parallel()
	for kind := range pairs() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			manifest, existing := object(t, kind), object(t, kind, stored(kind))
			existing.SetAnnotations(map[string]string{"service.beta.openshift.io/inject-cabundle": "true"})
			for _, path := range paths(existing.Object) {
				for _, wrong := range []any{"text", 1.5, []any{"a", int64(1), nil}, map[string]any{"a": map[string]any{"b": int64(1)}}, unnamed()} {
					required := manifest.DeepCopy()
					if !set(required.Object, path, wrong) {
						continue
					}
					merged, changed := merge.Of(required, existing)
					if _, again := merge.Of(required, merged); changed && again && isTyped(required) && !cmp.Equal(wrong, any(unnamed())) {
						t.Errorf("with %v in %s, the merged object is changed again", wrong, path)
					}
					merge.Of(existing, required)
					_ = merge.Inject(required, merge.Proxy{HTTP: "http"}) // it fails for some, and must not panic
				}
			}
		})
	}
}

func unnamed() []any {
	return []any{map[string]any{"name": int64(1)}, map[string]any{"name": "a"}, map[string]any{"name": "a"}, map[string]any{}}
}

func TestHostileReplaces(t *testing.T) {
	for path, wrong := range map[string]string{
		"spec": "text", "spec.template": "[a]", "spec.template.spec.containers": "[a]", "spec.template.spec.volumes": "{a: b}",
		"spec.template.spec.nodeSelector": "[a]", "spec.template.spec.tolerations": "text", "spec.selector": "text", "metadata.labels": "[a]",
	} {
		required, existing := object(t, "Deployment"), object(t, "Deployment", stored("Deployment"))
		if !set(required.Object, path, value(t, wrong)) {
			t.Fatalf("the manifest has no %s", path)
		}
		merged, changed := merge.Of(required, existing)
		if diff := cmp.Diff(value(t, wrong), at(merged.Object, path)); diff != "" || !changed {
			t.Errorf("%s: changed is %v (-want +got):\n%s", path, changed, diff)
		}
	}
}

func TestInject(t *testing.T) {
	const annotation = "metadata: {annotations: {config.openshift.io/inject-proxy: %q}}"
	const env = "[{name: HTTP_PROXY, value: ''}, {name: HTTPS_PROXY, value: https}, {name: NO_PROXY, value: .local}]"
	proxy := merge.Proxy{HTTPS: "https", No: ".local"}
	for _, row := range []struct {
		name, kind, containers string
		proxy                  merge.Proxy
		want                   map[string]string
		fails                  string
	}{
		{
			name: "containers and init containers", kind: "Deployment", containers: "proxy,init", proxy: proxy,
			want: map[string]string{
				"spec.template.spec.containers.1.env": env, "spec.template.spec.initContainers.0.env": env, "spec.template.spec.containers.0.env.2": "",
			},
		},
		{
			name: "a DaemonSet", kind: "DaemonSet", containers: "agent", proxy: proxy,
			want: map[string]string{"spec.template.spec.containers.0.env": env},
		},
		{
			name: "after other variables", kind: "Deployment", containers: "api", proxy: proxy,
			want: map[string]string{
				"spec.template.spec.containers.0.env.2":      "{name: HTTP_PROXY, value: ''}",
				"spec.template.spec.containers.0.env.1.name": "POD",
			},
		},
		{name: "no such container", kind: "Deployment", containers: "proxy, api", proxy: proxy, fails: `" api"`},
		{name: "no proxy", kind: "Deployment", containers: "none", want: map[string]string{"spec.template.spec.containers.1.env": ""}},
		{name: "no annotation", kind: "Deployment", proxy: proxy, want: map[string]string{"spec.template.spec.containers.1.env": ""}},
		{name: "another kind", kind: "CronJob", containers: "none", proxy: proxy},
	} {
		t.Run(row.name, func(t *testing.T) {
			required := object(t, row.kind, fmt.Sprintf(annotation, row.containers))
			err := merge.Inject(required, row.proxy)
			if failed := err != nil; failed != (row.fails != "") || failed && !strings.Contains(err.Error(), row.fails) {
				t.Errorf("the error is %v, want one with %q", err, row.fails)
			}
			for path, want := range row.want {
				if diff := cmp.Diff(value(t, want), at(required.Object, path)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", path, diff)
				}
			}
		})
	}
}

// FuzzOf: no two documents cause a panic or are changed. That a merged object is not changed again is held by TestOf and
// TestHostile, for objects that an API server stores: of another one, such as one with a text as its spec, the text is
// removed first, and the fields have their defaults only then.
func FuzzOf(f *testing.F) {
	for kind := range pairs() {
		f.Add(document(f, object(f, kind)), document(f, object(f, kind, stored(kind))))
	}
	f.Fuzz(func(t *testing.T, manifest, present []byte) {
		required, existing := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		if len(manifest)+len(present) > 32<<10 || required.UnmarshalJSON(manifest) != nil || existing.UnmarshalJSON(present) != nil {
			return
		}
		existing.SetGroupVersionKind(required.GroupVersionKind())
		before := [2]*unstructured.Unstructured{required.DeepCopy(), existing.DeepCopy()}
		merged, changed := merge.Of(required, existing)
		if diff := cmp.Diff(before, [2]*unstructured.Unstructured{required, existing}); diff != "" {
			t.Fatalf("Of changed its arguments (-before +after):\n%s", diff)
		}
		if !changed && !cmp.Equal(existing.Object, merged.Object) {
			t.Fatalf("unchanged, but merged (-existing +merged):\n%s", cmp.Diff(existing.Object, merged.Object))
		}
	})
}

// isTyped is true for the kinds that have rules of their own.
func isTyped(object *unstructured.Unstructured) bool {
	pair, known := pairs()[object.GetKind()]
	return known && object.GetKind() != "ConsolePlugin" && pair.version == object.GetAPIVersion()
}

// object is the manifest of the pair of a kind with edits.
func object(tb testing.TB, kind string, edits ...string) *unstructured.Unstructured {
	tb.Helper()
	pair := pairs()[kind]
	content := any(map[string]any{"apiVersion": pair.version, "kind": kind})
	for _, edit := range append([]string{pair.manifest}, edits...) {
		content = edited(content, value(tb, edit))
	}
	made := &unstructured.Unstructured{}
	if err := made.UnmarshalJSON(document(tb, content)); err != nil {
		tb.Fatal(err)
	}
	return made
}

func stored(kind string) string { return pairs()[kind].stored }

// edited is base with the maps of edit merged, its lists item by item, and its nulls removed.
func edited(base, edit any) any {
	switch edit := edit.(type) {
	case nil:
		return base
	case map[string]any:
		made := map[string]any{}
		if content, isMap := base.(map[string]any); isMap {
			maps.Copy(made, content)
		}
		for name, each := range edit {
			made[name] = edited(made[name], each)
			if each == nil {
				delete(made, name)
			}
		}
		return made
	case []any:
		list, _ := base.([]any)
		made := append([]any{}, list...)
		for at, each := range edit {
			if at == len(made) {
				made = append(made, nil)
			}
			made[at] = edited(made[at], each)
			if each == nil {
				made = slices.Delete(made, at, at+1)
			}
		}
		return made
	}
	return edit
}

func document(tb testing.TB, content any) []byte {
	tb.Helper()
	document, err := json.Marshal(content)
	if err != nil {
		tb.Fatal(err)
	}
	return document
}

// value is a value in YAML as the dynamic client has it, nil for an empty one.
func value(tb testing.TB, text string) any {
	tb.Helper()
	document, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	var made any
	if err := utiljson.Unmarshal(document, &made); err != nil {
		tb.Fatal(err)
	}
	return made
}

// at is the value at a path such as spec.ports.0.name, nil where there is none.
func at(value any, path string) any {
	name, rest, found := strings.Cut(path, ".")
	var within any
	switch value := value.(type) {
	case map[string]any:
		within = value[name]
	case []any:
		if index, err := strconv.Atoi(name); err == nil && index < len(value) {
			within = value[index]
		}
	}
	if !found {
		return within
	}
	return at(within, rest)
}

// set replaces the value at a path that exists.
func set(within any, path string, value any) bool {
	name := path
	if cut := strings.LastIndex(path, "."); cut >= 0 {
		within, name = at(within, path[:cut]), path[cut+1:]
	}
	switch within := within.(type) {
	case map[string]any:
		within[name] = value
		return true
	case []any:
		if index, err := strconv.Atoi(name); err == nil && index < len(within) {
			within[index] = value
			return true
		}
	}
	return false
}

// paths are the paths of all values but the kind.
func paths(value any) []string {
	var found []string
	add := func(name string, within any) {
		if strings.Contains(name, ".") || name == "apiVersion" || name == "kind" {
			return
		}
		found = append(found, name)
		for _, each := range paths(within) {
			found = append(found, name+"."+each)
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for name, each := range value {
			add(name, each)
		}
	case []any:
		for at, each := range value {
			add(strconv.Itoa(at), each)
		}
	}
	return found
}

// pair is a manifest, and what the object has beyond it: defaults of the API server, and what others have added.
type pair struct{ version, manifest, stored string }

// pairs are the pairs by kind: all that have rules of their own, and ConsolePlugin.
func pairs() map[string]pair {
	const metadata = "metadata: {uid: u-1, resourceVersion: '7', generation: 3, labels: {theirs: x}, annotations: {theirs: x}}\n"
	const pod = `
initContainers: [{name: init, image: init, command: [sh]}]
containers:
- name: api
  image: api
  env: [{name: MODE, value: a}, {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
  ports: [{name: https, containerPort: 8443}]
  resources: {requests: {cpu: 10m}}
  volumeMounts: [{name: tls, mountPath: /tls, readOnly: true}]
  livenessProbe: {httpGet: {path: /healthz, port: 8443}, initialDelaySeconds: 0}
  securityContext: {allowPrivilegeEscalation: false}
- {name: proxy, image: proxy}
volumes: [{name: tls, secret: {secretName: tls}}, {name: tmp}]
tolerations: [{operator: Exists}]
serviceAccountName: api
hostNetwork: false
`
	const podDefaults = `
initContainers: [{imagePullPolicy: Always, terminationMessagePath: /dev/termination-log, resources: {}}]
containers:
- imagePullPolicy: IfNotPresent
  terminationMessagePolicy: File
  env: [{}, {valueFrom: {fieldRef: {apiVersion: v1}}}]
  ports: [{protocol: TCP}]
  livenessProbe:
    {httpGet: {scheme: HTTP}, initialDelaySeconds: null, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}
- {resources: {}}
volumes: [{secret: {defaultMode: 420}}, {emptyDir: {}}]
restartPolicy: Always
dnsPolicy: ClusterFirst
schedulerName: default-scheduler
securityContext: {}
serviceAccount: api
hostNetwork: null
terminationGracePeriodSeconds: 30
`
	const job = "{template: {spec: {restartPolicy: Never, containers: [{name: job, image: job}]}}}"
	const jobDefaults = `{selector: {matchLabels: {job: u-1}}, backoffLimit: 6, completionMode: NonIndexed, suspend: false,
  podReplacementPolicy: TerminatingOrFailed, template: {metadata:
  {labels: {job: u-1}}, spec: {dnsPolicy: ClusterFirst, terminationGracePeriodSeconds: 30, securityContext: {}}}}`
	const agent = "spec: {selector: {matchLabels: {app: agent}}, template: {metadata: {labels: {app: agent}}, " +
		"spec: {containers: [{name: agent, image: agent}]}}}"
	named := func(fields string) string {
		return "metadata: {name: api, namespace: test, labels: {app: api}}\n" + fields
	}
	indented := func(text string) string { return strings.ReplaceAll(text, "\n", "\n      ") }
	return map[string]pair{
		"Deployment": {
			"apps/v1",
			named("spec:\n  replicas: 2\n  selector: {matchLabels: {app: api}}\n  template:\n" +
				"    metadata: {labels: {app: api}}\n    spec:" + indented(pod)),
			metadata + "status: {replicas: 2}\nspec:\n  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}\n" +
				"  revisionHistoryLimit: 10\n  progressDeadlineSeconds: 600\n  template:\n    spec:" + indented(podDefaults),
		},
		"DaemonSet": {
			"apps/v1", named(agent),
			metadata + `spec: {revisionHistoryLimit: 10, updateStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0}},
  template: {spec: {restartPolicy: Always, dnsPolicy: ClusterFirst, terminationGracePeriodSeconds: 30, securityContext: {}}}}`,
		},
		"CronJob": {
			"batch/v1", named("spec: {schedule: '@daily', jobTemplate: {spec: " + job + "}}"),
			metadata + "spec: {concurrencyPolicy: Allow, suspend: false, successfulJobsHistoryLimit: 3, " +
				"failedJobsHistoryLimit: 1, jobTemplate: {spec: " + jobDefaults + "}}",
		},
		"Job":       {"batch/v1", named("spec: " + job), metadata + "spec: " + jobDefaults},
		"ConfigMap": {"v1", named("data: {config: a}\nbinaryData: {blob: aGk=}"), metadata},
		"Namespace": {"v1", "metadata: {name: test, labels: {app: api}}", metadata + "spec: {finalizers: [kubernetes]}\n" +
			"status: {phase: Active}"},
		"ServiceAccount": {"v1", named(""), metadata + "secrets: [{name: s}]"},
		"Service": {
			"v1", named("spec: {selector: {app: api}, ports: [{name: https, port: 443}]}"),
			metadata + `spec: {type: ClusterIP, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], sessionAffinity: None, internalTrafficPolicy: Cluster,
  ports: [{protocol: TCP, targetPort: 443}]}`,
		},
		"ImageStream": {
			"image.openshift.io/v1", named("spec: {tags: [{name: latest, from: {kind: DockerImage, name: image}}]}"),
			metadata + "spec: {lookupPolicy: {local: false}, tags: [{importPolicy: {importMode: Legacy}, " +
				"referencePolicy: {type: Source}, generation: 2}]}",
		},
		"OperatorGroup": {"operators.coreos.com/v1", named("spec: {targetNamespaces: [test]}"), metadata + "spec: {upgradeStrategy: Default}"},
		"ClusterRole": {
			"rbac.authorization.k8s.io/v1", "metadata: {name: api}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]", metadata,
		},
		"Role": {
			"rbac.authorization.k8s.io/v1", named("rules: [{apiGroups: [''], resources: [pods], verbs: [get], resourceNames: []}]"),
			metadata + "rules: [{resourceNames: null}]",
		},
		"ClusterRoleBinding": {
			"rbac.authorization.k8s.io/v1",
			"metadata: {name: api}\nroleRef: {kind: ClusterRole, name: reader}\nsubjects: [{kind: ServiceAccount, name: api, namespace: test}]",
			metadata + "roleRef: {apiGroup: rbac.authorization.k8s.io}",
		},
		"RoleBinding": {
			"rbac.authorization.k8s.io/v1",
			named("roleRef: {kind: Role, name: api, apiGroup: rbac.authorization.k8s.io}\n" +
				"subjects: [{kind: ServiceAccount, name: api, namespace: test, apiGroup: ''}]"),
			metadata + "subjects: [{apiGroup: null}]",
		},
		"SecurityContextConstraints": {
			"security.openshift.io/v1", `metadata: {name: api}
allowHostNetwork: false
allowedCapabilities: null
fsGroup: {type: MustRunAs}
priority: null
readOnlyRootFilesystem: false
requiredDropCapabilities: [ALL]
runAsUser: {type: MustRunAsRange}
seLinuxContext: {type: MustRunAs}
supplementalGroups: {type: RunAsAny, ranges: []}
users: []
volumes: [configMap, secret]
`, metadata + "users: null\ngroups: []\nallowPrivilegeEscalation: true\nallowHostPorts: false\nsupplementalGroups: {ranges: null}",
		},
		"CustomResourceDefinition": {
			"apiextensions.k8s.io/v1", `metadata: {name: things.test.io}
spec:
  group: test.io
  names: {kind: Thing, plural: things}
  preserveUnknownFields: false
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer, minimum: 0}}}}
    subresources: {status: {}}
`, metadata + "status: {storedVersions: [v1]}\nspec: {preserveUnknownFields: null, conversion: {strategy: None}, " +
				"names: {singular: thing, listKind: ThingList}}",
		},
		"ValidatingWebhookConfiguration": {
			"admissionregistration.k8s.io/v1", `metadata: {name: things.test.io}
webhooks:
- name: things.test.io
  admissionReviewVersions: [v1]
  clientConfig: {service: {name: s, namespace: ns, path: /, port: 443}}
  rules: [{apiGroups: [test.io], apiVersions: [v1], resources: [things], operations: [CREATE]}]
  sideEffects: None
`, metadata + `webhooks: [{failurePolicy: Fail, matchPolicy: Equivalent, namespaceSelector: {}, objectSelector: {}, timeoutSeconds: 10,
  rules: [{scope: '*'}]}]`,
		},
		"ClusterOperator": {
			"config.openshift.io/v1", "metadata: {name: api}\nspec: {}\nstatus: {versions: [{name: operator, version: 4.20.0}]}",
			metadata + "status: {versions: [{version: 4.19.0}]}",
		},
		"ConsolePlugin": {"console.openshift.io/v1", "metadata: {name: api}\nspec: {displayName: Plugin}", metadata + "status: {phase: Ready}"},
	}
}
