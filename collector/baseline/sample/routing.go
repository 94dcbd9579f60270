package sample

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/baseline/health"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/words"
)

var _ = catalog.Reasons("An IngressController, a Route or an egress rule has a problem after the update that it did not have before.", `
CanaryChecksFailing | The test requests of the ingress operator through its routers fail. | Check the routers, the load balancer before them and the
	DNS records. | oc describe ingresscontroller NAME -n openshift-ingress-operator
NotAdmitted | A router no longer admits it: the new release validates Routes more strictly, or another Route has its host. | Read the
	conditions of its status. | oc describe route NAME -n NAMESPACE
NotApplied | The network plugin could not apply its rules, so its traffic is not restricted as before. | Read its status. | oc describe egressfirewall NAME -n NAMESPACE
NotAssigned | One of its addresses is assigned to no node, so traffic leaves the cluster with another address. | Check that a node with the label
	k8s.ovn.org/egress-assignable is ready and has the subnet. | oc describe egressip NAME`)

// route is a Route (route.openshift.io/v1) without its host and certificates.
type route struct {
	metav1.ObjectMeta `json:"metadata"`

	// Spec is compared, since its API has no generation.
	Spec   map[string]any `json:"spec"`
	Status struct {
		// Ingress has an entry for each router that selects the route.
		Ingress []struct {
			RouterName string     `json:"routerName"`
			Conditions conditions `json:"conditions"`
		} `json:"ingress"`
	} `json:"status"`
}

// ingressController is an IngressController (operator.openshift.io/v1).
type ingressController struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		Conditions conditions `json:"conditions"`
	} `json:"status"`
}

// configured are objects that users configure, beside workloads.
type configured struct{ sampler *sampler }

func (c configured) routing(ctx context.Context) {
	s := c.sampler
	found := kept(s, baseline.Route, readAs[route](ctx, s, routes(), baseline.Route))
	for i := range found {
		object := routeOf(&found[i])
		s.describe(&object, &found[i], "route.openshift.io", "routes")
		if to, _ := found[i].Spec["to"].(map[string]any); to["kind"] == string(baseline.Service) {
			object.Refs = []baseline.Key{{Kind: baseline.Service, Namespace: found[i].Namespace, Name: fmt.Sprint(to["name"])}}
		}
		s.keep(baseline.Key{Kind: baseline.Route, Namespace: found[i].Namespace, Name: found[i].Name}, object)
	}
	controllers := kept(s, baseline.IngressController, readAs[ingressController](ctx, s, ingressControllers(), baseline.IngressController))
	for i := range controllers {
		of := &controllers[i]
		object := baseline.Object{Generation: of.Generation}
		s.describe(&object, of, "operator.openshift.io", "ingresscontrollers")
		for _, each := range []struct{ kind, status, reason string }{
			{"Available", conditionFalse, "Unavailable"},
			{"Degraded", conditionTrue, "Degraded"},
			{"CanaryChecksSucceeding", conditionFalse, "CanaryChecksFailing"},
		} {
			if state := of.Status.Conditions.of(each.kind); state.Status == each.status {
				object.Add(state.problem(each.reason))
			}
		}
		s.keep(baseline.Key{Kind: baseline.IngressController, Namespace: of.Namespace, Name: of.Name}, object)
	}
}

func routeOf(of *route) baseline.Object {
	object := baseline.Object{Generation: of.Generation, Revision: health.Revision(map[string]any{"spec": of.Spec})}
	for _, router := range of.Status.Ingress {
		admitted := router.Conditions.of("Admitted")
		if admitted.Status == conditionTrue {
			object.Ready++
			continue
		}
		problem := admitted.problem("NotAdmitted")
		problem.Message = fmt.Sprintf("router %s has not admitted it: %s", words.External(router.RouterName), problem.Message)
		object.Add(problem)
	}
	if len(of.Status.Ingress) == 0 {
		object.Add(baseline.Problem{Reason: "NotAdmitted", Message: "no router has admitted it"})
	}
	return object
}

// egressIP is an EgressIP (k8s.ovn.org/v1).
type egressIP struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		EgressIPs []string `json:"egressIPs"`
	} `json:"spec"`
	Status struct {
		Items []assignment `json:"items"`
	} `json:"status"`
}

// assignment is an address that a node has.
type assignment struct {
	EgressIP string `json:"egressIP"`
}

// egressFirewall is an EgressFirewall (k8s.ovn.org/v1).
type egressFirewall struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		Status string `json:"status"`
	} `json:"status"`
}

// applied begins the status of an EgressFirewall that works (ovn-kubernetes go-controller pkg/ovn/egressfirewall.go).
const applied = "EgressFirewall Rules applied"

func (c configured) egress(ctx context.Context) {
	s := c.sampler
	addresses := kept(s, baseline.EgressIP, readAs[egressIP](ctx, s, egressIPs(), baseline.EgressIP))
	for i := range addresses {
		of := &addresses[i]
		object := baseline.Object{Generation: of.Generation, Desired: count(len(of.Spec.EgressIPs)), Ready: count(len(of.Status.Items))}
		for _, wanted := range of.Spec.EgressIPs {
			if !of.assigns(wanted) {
				object.Add(baseline.Problem{Reason: "NotAssigned", Message: fmt.Sprintf("%s is assigned to no node", words.External(wanted))})
			}
		}
		s.describe(&object, of, "k8s.ovn.org", "egressips")
		s.keep(baseline.Key{Kind: baseline.EgressIP, Name: of.Name}, object)
	}
	firewalls := kept(s, baseline.EgressFirewall, readAs[egressFirewall](ctx, s, egressFirewalls(), baseline.EgressFirewall))
	for i := range firewalls {
		of := &firewalls[i]
		object := baseline.Object{Generation: of.Generation}
		if status := of.Status.Status; status != "" && !strings.HasPrefix(status, applied) {
			object.Add(baseline.Problem{Reason: "NotApplied", Message: words.External(status)})
		}
		s.describe(&object, of, "k8s.ovn.org", "egressfirewalls")
		s.keep(baseline.Key{Kind: baseline.EgressFirewall, Namespace: of.Namespace, Name: of.Name}, object)
	}
}

// assigns reports whether a node has the address, whose spelling may differ.
func (e *egressIP) assigns(wanted string) bool {
	return slices.ContainsFunc(e.Status.Items, func(item assignment) bool {
		return item.EgressIP == wanted || sameAddress(item.EgressIP, wanted)
	})
}

func sameAddress(a, b string) bool {
	one, err := netip.ParseAddr(a)
	if err != nil {
		return false
	}
	other, err := netip.ParseAddr(b)
	return err == nil && one == other
}

// count is a number of items of one object.
func count(items int) int32 { return int32(min(items, math.MaxInt32)) } //nolint:gosec // min bounds it to an int32

var _ = catalog.Reasons("A volume or a PersistentVolumeClaim has a problem after the update that it did not have before.", `
AttachFailed | The CSI driver could not attach it to the node of its pod. | Read the error of the VolumeAttachment. | oc get volumeattachments -o yaml
Lost | Its PersistentVolume no longer exists. | Restore the volume, or recreate the claim from a backup.
NotProvisioning | No new claim of the StorageClass gets a volume. | Read the events of the claims, and the log of the provisioner. | oc describe storageclass NAME
NotBound | The provisioner of its StorageClass is missing or not working. | Read the events of the claim. | oc describe persistentvolumeclaim NAME -n NAMESPACE`)

// attachment is a VolumeAttachment (storage.k8s.io/v1).
type attachment struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		NodeName string `json:"nodeName"`
		Source   struct {
			PersistentVolumeName string `json:"persistentVolumeName"`
		} `json:"source"`
	} `json:"spec"`
	Status struct {
		// AttachError is nil for one that was attached, or is being attached.
		AttachError *struct {
			Time    metav1.Time `json:"time"`
			Message string      `json:"message"`
		} `json:"attachError"`
	} `json:"status"`
}

// volumes are the claims, and what provides them.
type volumes struct{ sampler *sampler }

func (v volumes) storage(ctx context.Context) {
	s := v.sampler
	waits := v.classes(ctx)
	drivers := readAs[metav1.PartialObjectMetadata](ctx, s, csiDrivers(), baseline.CSIDriver)
	for i := range drivers {
		var object baseline.Object
		s.describe(&object, &drivers[i], storagev1.GroupName, "csidrivers")
		s.keep(baseline.Key{Kind: baseline.CSIDriver, Name: drivers[i].Name}, object)
	}
	v.claimed(ctx, waits)
	v.attachments(ctx)
}

// classes are the StorageClasses; it returns those whose claims wait for their first pod.
func (v volumes) classes(ctx context.Context) map[string]bool {
	s := v.sampler
	classes := readAs[storagev1.StorageClass](ctx, s, storageClasses(), baseline.StorageClass, baseline.PersistentVolumeClaim)
	waits := map[string]bool{}
	for i := range classes {
		mode := classes[i].VolumeBindingMode
		waits[classes[i].Name] = mode != nil && *mode == storagev1.VolumeBindingWaitForFirstConsumer
		var object baseline.Object
		s.describe(&object, &classes[i], storagev1.GroupName, "storageclasses")
		if classes[i].Annotations[defaultClass] == "true" {
			object.Detail = baseline.Default
		}
		s.keep(baseline.Key{Kind: baseline.StorageClass, Name: classes[i].Name}, object)
	}
	return waits
}

// claimed are the PersistentVolumeClaims.
func (v volumes) claimed(ctx context.Context, waits map[string]bool) {
	s := v.sampler
	complete := s.complete(baseline.StorageClass)
	found := kept(s, baseline.PersistentVolumeClaim, readAs[corev1.PersistentVolumeClaim](ctx, s, claims(), baseline.PersistentVolumeClaim))
	for i := range found {
		of := &found[i]
		class := ""
		if of.Spec.StorageClassName != nil {
			class = *of.Spec.StorageClassName
		}
		mayWait, known := waits[class]
		mayWait = mayWait || !known && class != "" && !complete
		object := baseline.Object{Detail: fact(string(of.Status.Phase))}
		if problem, exists := unbound(of, class); exists && (of.Status.Phase != corev1.ClaimPending || !mayWait) {
			object.Add(problem)
		}
		s.describe(&object, of, "", "persistentvolumeclaims")
		if class != "" {
			object.Refs = []baseline.Key{{Kind: baseline.StorageClass, Name: class}}
		}
		s.keep(baseline.Key{Kind: baseline.PersistentVolumeClaim, Namespace: of.Namespace, Name: of.Name}, object)
	}
	v.provisioning(found, waits)
}

// defaultClass is the annotation of the StorageClass for claims that name none.
const defaultClass = "storageclass.kubernetes.io/is-default-class"

// unprovisioned is how many new claims of a StorageClass have to wait, with none that is bound, before the class counts as the
// cause: a single one may ask for what the class does not have.
const unprovisioned = 2

// provisioned are the claims of a StorageClass: how many wait, since when, and when the newest one was created that is bound.
type provisioned struct {
	waiting     int
	since, last time.Time
	bound       bool
}

func (p *provisioned) add(claim *corev1.PersistentVolumeClaim) {
	created := claim.CreationTimestamp.UTC()
	switch claim.Status.Phase {
	case corev1.ClaimPending:
		p.waiting++
		if p.since.IsZero() || created.Before(p.since) {
			p.since = created
		}
	case corev1.ClaimBound:
		p.bound, p.last = true, latest(p.last, created)
	case corev1.ClaimLost:
	}
}

// provisioning adds the problem of a StorageClass whose new claims all wait, although others of it are bound.
func (v volumes) provisioning(claims []corev1.PersistentVolumeClaim, waits map[string]bool) {
	s := v.sampler
	classes := map[string]*provisioned{}
	for i := range claims {
		of := &claims[i]
		if of.Spec.StorageClassName == nil || waits[*of.Spec.StorageClassName] && of.Annotations["volume.kubernetes.io/selected-node"] == "" &&
			of.Status.Phase == corev1.ClaimPending {
			continue
		}
		name := *of.Spec.StorageClassName
		if classes[name] == nil {
			classes[name] = &provisioned{}
		}
		classes[name].add(of)
	}
	for name, of := range classes {
		key := baseline.Key{Kind: baseline.StorageClass, Name: name}
		if object, exists := s.state.Objects[key]; exists && of.bound && of.waiting >= unprovisioned && of.last.Before(of.since) {
			object.Add(baseline.Problem{
				Reason: "NotProvisioning", Since: of.since,
				Message: fmt.Sprintf("%s of it wait for a volume, and no newer claim is bound", words.Count(of.waiting, "claim")),
			})
			s.state.Objects[key] = object
		}
	}
}

// unbound is the problem of a claim without a volume; false where it has one.
func unbound(of *corev1.PersistentVolumeClaim, class string) (baseline.Problem, bool) {
	switch of.Status.Phase {
	case corev1.ClaimBound:
		return baseline.Problem{}, false
	case corev1.ClaimLost:
		return baseline.Problem{Reason: "Lost", Message: fmt.Sprintf("its PersistentVolume %s does not exist",
			words.External(of.Spec.VolumeName))}, true
	case corev1.ClaimPending:
	}
	message := "it is not bound, and has no StorageClass"
	if class != "" {
		message = "it is not bound, and has StorageClass " + words.External(class)
	}
	return baseline.Problem{Reason: "NotBound", Since: at(of.CreationTimestamp), Message: message}, true
}

// attachments are those that have failed, by their PersistentVolume: the name of a VolumeAttachment does not survive a move to
// another node.
func (v volumes) attachments(ctx context.Context) {
	s := v.sampler
	found := readAs[attachment](ctx, s, attachments(), baseline.VolumeAttachment)
	for i := range found {
		of := &found[i]
		failed := of.Status.AttachError
		if failed == nil || of.DeletionTimestamp != nil || of.Spec.Source.PersistentVolumeName == "" {
			continue
		}
		object := baseline.Object{}
		object.Add(baseline.Problem{
			Reason: "AttachFailed", Since: at(failed.Time),
			Message: cmp.Or(words.External(failed.Message), "it cannot be attached"), Node: fact(of.Spec.NodeName),
		})
		s.keep(baseline.Key{Kind: baseline.VolumeAttachment, Name: of.Spec.Source.PersistentVolumeName}, object)
	}
}
