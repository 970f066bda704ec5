//! Conversions into input requests.

use crate::{CreateMessageRequest, CreateMessageRequestParams, InputRequest};

impl From<CreateMessageRequestParams> for InputRequest {
    fn from(params: CreateMessageRequestParams) -> Self {
        Self::CreateMessage(CreateMessageRequest::new(params))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ElicitRequestFormParams, InputRequiredResult, ListRootsRequest, OrderedMap, RequestedSchema, SamplingMessage,
    };

    // covers: M-21
    #[test]
    fn every_kind_of_question_takes_one_line() {
        let form = ElicitRequestFormParams::new("Who?", RequestedSchema::new(OrderedMap::new()));
        let asks = InputRequiredResult::default().input_requests([
            ("form", InputRequest::from(form)),
            ("model", CreateMessageRequestParams::new(vec![SamplingMessage::user("hi")], 5).into()),
            ("roots", ListRootsRequest::default().into()),
        ]);
        let written = serde_json::to_value(&asks).unwrap();
        for (key, method) in
            [("form", "elicitation/create"), ("model", "sampling/createMessage"), ("roots", "roots/list")]
        {
            let request = written["inputRequests"][key].as_object().unwrap();
            assert_eq!(request["method"], method);
            assert!(
                request.keys().all(|member| ["method", "params"].contains(&member.as_str())),
                "no envelope: {request:?}"
            );
        }
    }
}
