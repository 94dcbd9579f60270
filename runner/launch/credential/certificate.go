package credential

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
)

// hasClientCertificate is true for a value with a certificate in PEM by which a client is one of the users or
// groups of Kubernetes itself. It counts without its key, which may be in another Secret.
func hasClientCertificate(value []byte) bool {
	for block, rest := pem.Decode(value); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && isClient(certificate) && isOwnUser(certificate) {
			return true
		}
	}
	return false
}

// isClient is false for the certificate of an authority, and for one of servers alone.
func isClient(certificate *x509.Certificate) bool {
	usages := certificate.ExtKeyUsage
	return !certificate.IsCA && (len(usages) == 0 || slices.Contains(usages, x509.ExtKeyUsageClientAuth) || slices.Contains(usages, x509.ExtKeyUsageAny))
}

// isOwnUser is true for a certificate whose user, or one of whose groups, is reserved for Kubernetes, such as
// system:masters, or is that of the administrator or of the front proxy that kubeadm creates.
func isOwnUser(certificate *x509.Certificate) bool {
	return slices.ContainsFunc(append(slices.Clone(certificate.Subject.Organization), certificate.Subject.CommonName), func(name string) bool {
		return strings.HasPrefix(name, "system:") || slices.Contains([]string{"kubeadm:cluster-admins", "front-proxy-client"}, name)
	})
}
