# SPDX-License-Identifier: GPL-2.0-only
"""The JSON schema of a study file, for editors."""

from typing import Any

import msgspec

from isoblk.caches.registry import CACHES
from isoblk.run import limits
from isoblk.schedulers.registry import SCHEDULERS
from isoblk.study.model import Study
from isoblk.study.presets import preset_names


def study_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a study file, with each field's meaning and range.

    It does not cover rules between fields; check_study() checks these too.
    """
    schema = msgspec.json.schema(Study)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "isoblk study"
    definitions: dict[str, dict[str, Any]] = schema["$defs"]
    for definition in definitions.values():
        definition["description"] = " ".join(definition["description"].split())
    for option in definitions["TenantEntry"]["properties"]["weight"]["anyOf"]:
        whole = option["items"] if option["type"] == "array" else option
        whole |= {"minimum": limits.WEIGHT.low, "maximum": limits.WEIGHT.high}
    name_rules = {"pattern": f"^{limits.TENANT_NAME.pattern}$", "maxLength": limits.NAME_MAX}
    definitions["Study"]["properties"]["name"] |= name_rules
    definitions["TenantEntry"]["properties"]["name"] |= name_rules
    definitions["Study"]["properties"]["cache"]["enum"] = sorted(CACHES)
    definitions["Study"]["properties"]["scheduler"]["examples"] = list(SCHEDULERS)
    definitions["Study"]["properties"]["device"]["examples"] = list(preset_names())
    return schema
