package access

import (
	"slices"
	"strings"
)

// kubeVirtConnections is the API group whose resources connect to virtual machines.
const kubeVirtConnections = "subresources.kubevirt.io"

// connections are the subresources that are a connection rather than an object, in any
// API group.
func connections() []string {
	return []string{"exec", "attach", "portforward", "proxy", "console", "vnc", "usbredir", "vsock"}
}

// Connects reports whether a resource of an API group is a connection rather than an
// object, so that the verb get may execute commands. Wildcards include connections:
// "*" in the groups of Kubernetes' and KubeVirt's connections, and "RESOURCE/*". Below
// nodes only the status is an object: the kubelet authorizes requests by the other
// subresources.
func Connects(group, resource string) bool {
	name, subresource, _ := strings.Cut(resource, "/")
	switch {
	case subresource == "*" || slices.Contains(connections(), subresource):
		return true
	case name == "nodes" && subresource != "":
		return subresource != "status"
	case resource == "*":
		return slices.Contains([]string{"", "*", kubeVirtConnections}, group)
	}
	return false
}
