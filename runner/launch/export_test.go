package launch

import corev1 "k8s.io/api/core/v1"

// NamespaceQuotas has the quotas and the limit ranges of a namespace, for the tests of quota.go.
type NamespaceQuotas struct {
	Quotas      []corev1.ResourceQuota
	LimitRanges []corev1.LimitRange
}

func (n NamespaceQuotas) inner() namespaceQuotas {
	return namespaceQuotas{quotas: n.Quotas, limitRanges: n.LimitRanges}
}

// Unspecified is unspecified.
func (n NamespaceQuotas) Unspecified(spec corev1.PodSpec) string { return n.inner().unspecified(spec) }

// Exceeded is exceeded.
func (n NamespaceQuotas) Exceeded(spec corev1.PodSpec) string { return n.inner().exceeded(spec) }
