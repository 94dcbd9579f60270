package redaction

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
)

// validities are certificates in place of those of a text in PEM, with their validity and nothing else; empty
// without any. Its key is no secret. Of a name stays that it has an "@", as those of signers that an operator
// has renewed (library-go pkg/operator/certrotation/signer.go).
func validities(text string) string {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	var redacted strings.Builder
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return redacted.String()
		}
		of, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		made := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: of.NotBefore, NotAfter: of.NotAfter}
		if strings.Contains(of.Subject.CommonName, "@") {
			made.Subject = pkix.Name{CommonName: "@"}
		}
		if der, err := x509.CreateCertificate(nil, made, made, key.Public(), key); err == nil {
			redacted.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
		}
	}
}
