package real_test

import (
	"fmt"
	"strings"
)

// The number of simulated nodes, and the names of those that are changed.
const (
	nodes    = 3
	cordoned = "simulated-001"
	tainted  = "simulated-002"
)

// template is what a workload differs in.
type template struct {
	kind, namespace, name string
	replicas              int
	// annotations are those of its pods, pod and spec more fields of their spec and its own, as flow mappings without braces.
	annotations, pod, spec string
}

// yaml is the workload, with a Service of its name whose endpoints are its pods.
func (w template) yaml() string {
	of := map[string]string{"StatefulSet": fmt.Sprintf("replicas: %d, serviceName: %s, ", w.replicas, w.name), "DaemonSet": ""}
	counts, known := of[w.kind]
	if !known {
		counts = fmt.Sprintf("replicas: %d, ", w.replicas)
	}
	if w.spec != "" {
		counts += w.spec + ", "
	}
	annotations := "simulation-address: 192.0.2.10"
	if w.annotations != "" {
		annotations += ", " + w.annotations
	}
	pod := "containers: [{name: main, image: registry.example.com/main" + w.resources() + "}]"
	if w.pod != "" {
		pod += ", " + w.pod
	}
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Namespace
metadata: {name: %[2]s}
---
apiVersion: apps/v1
kind: %[1]s
metadata: {namespace: %[2]s, name: %[3]s}
spec: {%[4]sselector: {matchLabels: {app: %[3]s}}, template: {metadata: {labels: {app: %[3]s}, annotations: {%[5]s}}, spec: {%[6]s}}}
---
apiVersion: v1
kind: Service
metadata: {namespace: %[2]s, name: %[3]s}
spec: {selector: {app: %[3]s}, ports: [{port: 443}]}
`, w.kind, w.namespace, w.name, counts, annotations, pod)
}

// resources make pods of the namespace "grown" so large that two fit on a node.
func (w template) resources() string {
	if w.namespace != grown {
		return ""
	}
	return ", resources: {requests: {cpu: 30}}"
}

// grown is the namespace of a workload with large pods.
const grown = "grown"

func webhooks(name, namespace, service string) string {
	return fmt.Sprintf(`
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %s}
webhooks:
- name: policy.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {caBundle: Cg==, service: {namespace: %s, name: %s}}
  rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]
`, name, namespace, service)
}

// volume is a claim that is bound to a volume of its name.
func volume(namespace, name string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[2]s}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: manual, hostPath: {path: /nowhere}, claimRef: {namespace: %[1]s, name: %[2]s}}
`, namespace, name) + claim(namespace, name)
}

func claim(namespace, name string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: %s, name: %s}
spec: {storageClassName: manual, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, namespace, name)
}

// quota limits the pods of a namespace.
func quota(namespace string, pods int) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: ResourceQuota
metadata: {namespace: %s, name: pods}
spec: {hard: {pods: %d}}
`, namespace, pods)
}

// pools are those without which a cluster is none of OpenShift.
const pools = `
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker}
spec: {nodeSelector: {matchLabels: {node-role.kubernetes.io/worker: ""}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: manual}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: Immediate
`

// aggregated is an API that a server at a port serves, through a Service of another name of the machine.
func aggregated(port string) string {
	return strings.ReplaceAll(`
---
apiVersion: v1
kind: Namespace
metadata: {name: aggregated}
---
apiVersion: v1
kind: Service
metadata: {namespace: aggregated, name: api}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.real.example.com}
spec: {group: real.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {namespace: aggregated, name: api, port: PORT}}
`, "PORT", port)
}
