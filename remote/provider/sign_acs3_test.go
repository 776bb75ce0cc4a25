package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The worked example of Alibaba's own page about the signature.
func TestACS3(t *testing.T) {
	r, err := http.NewRequest(http.MethodPost, "https://ecs.cn-shanghai.aliyuncs.com/?RegionId=cn-shanghai&ImageId=win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("x-acs-action", "RunInstances")
	r.Header.Set("x-acs-version", "2014-05-26")
	r.Header.Set("User-Agent", "any")
	signACS3(r, pair{id: "YourAccessKeyId", secret: "YourAccessKeySecret"}, time.Date(2023, 10, 26, 10, 22, 32, 0, time.UTC), "3156853299f313e23d1673dc12e1703d")
	const want = "ACS3-HMAC-SHA256 Credential=YourAccessKeyId,SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version," +
		"Signature=06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0"
	if got := r.Header.Get("Authorization"); got != want {
		t.Errorf("%s", got)
	}
	if a, b := nonce(), nonce(); a == b || len(a) < 16 {
		t.Errorf("%q, %q", a, b)
	}
	// Escapes and a token, by the rules of the page.
	r, err = http.NewRequest(http.MethodPost, "https://ecs.cn-shanghai.aliyuncs.com/?b=%2A~%2F%C3%A9&a=x+y%2Bz", nil)
	if err != nil {
		t.Fatal(err)
	}
	signACS3(r, pair{id: "id", secret: "secret", token: "token"}, time.Unix(0, 0), "n")
	sum := func(s string) string { x := sha256.Sum256([]byte(s)); return hex.EncodeToString(x[:]) }
	canonical := "POST\n/\na=x%20y%2Bz&b=%2A~%2F%C3%A9\nhost:ecs.cn-shanghai.aliyuncs.com\nx-acs-content-sha256:" + sum("") +
		"\nx-acs-date:1970-01-01T00:00:00Z\nx-acs-security-token:token\nx-acs-signature-nonce:n\n\nhost;x-acs-content-sha256;x-acs-date;x-acs-security-token;x-acs-signature-nonce\n" + sum("")
	mac := hmac.New(sha256.New, []byte("secret"))
	mac.Write([]byte("ACS3-HMAC-SHA256\n" + sum(canonical)))
	if got, want := r.Header.Get("Authorization"), "Signature="+hex.EncodeToString(mac.Sum(nil)); !strings.HasSuffix(got, want) {
		t.Errorf("%s, not %s", got, want)
	}
}
