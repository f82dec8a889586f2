"""report_page.py PAGE PROFILE: the page's data is readable, its profile is that of the file, its policy names what is in it."""

import base64
import gzip
import hashlib
import json
import re
import sys


def require(is_so, what):
    if not is_so:
        sys.exit(f"report_page.py: {what}")


def block(page, name):
    found = re.findall(f'<script type="application/octet-stream" id="{name}">([A-Za-z0-9+/=]*)</script>', page)
    require(len(found) == 1, f"{len(found)} blocks {name}")
    return gzip.decompress(base64.b64decode(found[0], validate=True))


def check_policy(page):
    """Scripts and styles run only if their hash is in the policy: what is in the page, and nothing else."""
    policy = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    require(len(policy) == 1, "no policy")
    require(policy[0].startswith("default-src 'none';"), "a policy that lets things in")
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        texts = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        hashes = {"'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'" for text in texts}
        allowed = set(re.search(f"{directive} ([^;]*)", policy[0]).group(1).split())
        require(texts and hashes == allowed, f"{directive} allows {allowed}, and the page has {hashes}")


page = open(sys.argv[1], encoding="utf-8", newline="").read()
check_policy(page)
run = json.loads(block(page, "memprof-run"))
require(run["format"] == "memprof-page" and run["version"] == 1, "not a page of version 1")
with open(sys.argv[2], encoding="utf-8") as file:
    require(run["profile"] == json.load(file), "the profile is another one")
if run["detail"]:
    columns = block(page, "memprof-columns")
    end = 0
    for table in run["detail"]["tables"]:
        for column in table["columns"]:
            require(column["begin"] == end, "a hole between columns")
            end += column["bytes"]
    require(end == len(columns), "columns that no table has")
print("detail" if run["detail"] else "no detail", "; ".join(run["notes"]))
